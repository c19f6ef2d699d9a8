"""How this program supplies parts of the library; the parts themselves are in other modules, which
are loaded when the first is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

from ._tools import ToolOwner

if TYPE_CHECKING:
    from ._extensions import Registration, StoreRegistration, WorkspaceRegistration
    from ._protocols import (
        CompletionClient, ContextProvider, Decision, Maybe, ModelAnswer, ModelClient, PermissionChecker,
        Pieces, Response, SessionStore, Transport, Workspace,
    )
    from .types import EventLogLine, HostContextItem, HostContextQuery, HostModelRequest, HostPermissionCheck, SessionCommandContext


class ExtensionOwner(ToolOwner):
    """What agents and sessions share. What is registered with an agent serves all its sessions.

    A plain function runs in a worker thread, an async one in the loop that was running when it was
    registered, else in a loop of its own. They may use the library, the same session included. A
    function finds its :class:`~a3s_code.Context` with ``Context.current()``. An exception is
    told as its class and text. ``timeout_ms`` bounds one request; after it the answer is dropped.
    Each method raises ``TypeError`` for an object that lacks a method, and ``CodeError``
    ALREADY_EXISTS for a taken name, SESSION_CLOSED, INVALID_REQUEST. They call a3s_host_register.
    """

    def register_permission_checker(
        self, checker: PermissionChecker | Callable[[HostPermissionCheck], Maybe[Decision]], *,
        name: str = "checker", timeout_ms: int | None = None,
    ) -> Registration:
        """Has every tool call judged by this program. With a permission policy the strictest word
        of both counts; without one this takes the place of the default. A failure, and no answer
        within 5 seconds, is ``"deny"``.

        Args:
            checker: see :class:`~a3s_code.PermissionChecker`, or a function of its ``check``.
            name: tells several apart.
            timeout_ms: limit of one answer in milliseconds.
        """
        return _plain(self, "permission", name, checker, timeout_ms=timeout_ms)

    def register_context_provider(
        self, name: str, provider: ContextProvider | Callable[[HostContextQuery], Maybe[Pieces[HostContextItem]]], *,
        timeout_ms: int | None = None,
    ) -> Registration:
        """Gives background to prompts, which the system prompt quotes as untrusted data. What
        fails or takes more than 5 seconds is left out.

        Args:
            name: name of the provider.
            provider: see :class:`~a3s_code.ContextProvider`, or a function of its ``query``.
            timeout_ms: limit of one answer in milliseconds.
        """
        return _plain(self, "context", name, provider, timeout_ms=timeout_ms)

    def register_command(
        self, name: str, description: str, handler: Callable[[str, SessionCommandContext], Maybe[str]],
        usage: str | None = None, *, timeout_ms: int | None = None,
    ) -> Registration:
        """Answers prompts that begin with ``/name``; no model is asked.

        Args:
            name: the command without its slash.
            description: what ``/help`` and ``list_commands`` say.
            handler: gets what follows the name, and an object that describes the session; gives the text.
            usage: shows how it is called.
            timeout_ms: limit of one answer in milliseconds; default 5000.
        """
        return _plain(self, "command", name, handler, description=description, usage=usage, timeout_ms=timeout_ms)

    def register_log(
        self, handler: Callable[[EventLogLine], Any], *, name: str = "log",
        level: str | None = None, timeout_ms: int | None = None,
    ) -> Registration:
        """Receives the library's log lines, one at a time. Lines that it does not take within a
        second are dropped.

        Args:
            handler: gets an object with ``level``, ``message`` and more.
            name: tells several apart.
            level: the least level, ``"debug"``, ``"info"``, ``"warn"`` or ``"error"``; default the agent's.
            timeout_ms: limit of one line in milliseconds.
        """
        return _plain(self, "log", name, handler, level=level, timeout_ms=timeout_ms)


class AgentExtensions(ExtensionOwner):
    """What only agents take: it must be there before the session that names it opens."""

    def register_model(
        self, name: str,
        client: ModelClient | CompletionClient | Callable[[HostModelRequest], Maybe[ModelAnswer]], *,
        context: int | None = None, output: int | None = None, tool_call: bool | None = None,
        reasoning: bool | None = None, stream: bool | None = None, timeout_ms: int | None = None,
    ) -> Registration:
        """Supplies a model, to be named ``host/NAME`` in ``default_model`` or the option ``model``.

        Args:
            name: name of the model.
            client: see :class:`~a3s_code.ModelClient` and :class:`~a3s_code.CompletionClient`, or
                a function of the shape of ``stream``.
            context: size of its window in tokens; default 200000.
            output: bound of an answer in tokens; default it is left to the client.
            tool_call: whether it can call tools; default True.
            reasoning: whether it takes a thinking budget; default False.
            stream: False asks ``complete``; default True where there is ``stream``.
            timeout_ms: limit of one answer in milliseconds; default 10 minutes.
        """
        return _plain(
            self, "model", name, client, context=context, output=output, tool_call=tool_call,
            reasoning=reasoning, stream=stream, timeout_ms=timeout_ms)

    def register_session_store(self, name: str, store: SessionStore, *, timeout_ms: int | None = None) -> StoreRegistration:
        """Supplies a session store. What this gives is a value for ``SessionOptions.session_store``.
        A store that fails, or takes more than 30 seconds, is SESSION_ERROR.

        Args:
            name: name of the store.
            store: see :class:`~a3s_code.SessionStore` and :class:`~a3s_code.BlobSessionStore`.
            timeout_ms: limit of one answer in milliseconds.
        """
        from ._extensions import StoreRegistration, register

        return register(self, StoreRegistration, "store", name, store, timeout_ms=timeout_ms)

    def register_workspace(
        self, name: str, workspace: Workspace, *, run: bool | None = None, search: bool | None = None,
        root: str | None = None, timeout_ms: int | None = None,
    ) -> WorkspaceRegistration:
        """Supplies a workspace. What this gives is a value for ``SessionOptions.workspace_backend``.

        Args:
            name: name of the workspace.
            workspace: see :class:`~a3s_code.Workspace`.
            run: whether there is a shell; default whether it has a method ``run``.
            search: whether there are grep and glob; default whether it has a method ``search``.
            root: what people and models are told of the place; default ``host:NAME``.
            timeout_ms: limit of one answer in milliseconds; default one minute.
        """
        from ._extensions import WorkspaceRegistration, register

        return register(self, WorkspaceRegistration, "workspace", name, workspace, run=run, search=search, root=root, timeout_ms=timeout_ms)

    def register_transport(
        self, name: str, transport: Transport | Callable[[str, str, Mapping[str, list[str]], bytes], Maybe[Response]], *,
        timeout_ms: int | None = None,
    ) -> Registration:
        """Sends the HTTP requests of a provider whose key ``transport`` is ``"host/NAME"``.

        Args:
            name: name of the transport.
            transport: see :class:`~a3s_code.Transport`, or a function of its ``round_trip``.
            timeout_ms: limit of one response in milliseconds; default 10 minutes.
        """
        return _plain(self, "transport", name, transport, timeout_ms=timeout_ms)


def _plain(owner: ToolOwner, kind: str, name: str, served: Any, **spec: Any) -> Registration:
    from ._extensions import Registration, register

    return register(owner, Registration, kind, name, served, **spec)

"""How this program supplies parts of the library; the parts themselves are in other modules, which
are loaded when the first is registered."""

from __future__ import annotations

from . import _ffi
from ._errors import bad_type, forked
from ._wire import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, TypeVar, overload

    from ._context import Context, Supplied
    from ._desk import Desk
    from ._extensions import Registration, StoreRegistration, WorkspaceRegistration
    from ._protocols import (
        CompletionClient, ContextProvider, Decision, Maybe, ModelAnswer, ModelClient, PermissionChecker,
        Pieces, Response, SessionStore, Transport, Workspace,
    )
    from .types import EventLogLine, HostContextItem, HostContextQuery, HostModelRequest, HostPermissionCheck, SessionCommandContext

    F = TypeVar("F", bound=Callable[..., Any])


class ExtensionOwner:
    """What agents and sessions share. What is registered with an agent serves all its sessions.

    A plain function runs in a worker thread, an async one in the loop that was running when it was
    registered, else in a loop of its own. They may use the library, the same session included. A
    function finds its :class:`~a3s_code.Context` with ``Context.current()``. An exception is
    told as its class and text. ``timeout_ms`` bounds one request; after it the answer is dropped.
    Each method raises ``TypeError`` for an object that lacks a method, and ``CodeError``
    ALREADY_EXISTS for a taken name, SESSION_CLOSED, INVALID_REQUEST. They call a3s_host_register.
    """

    _handle: _ffi.Handle
    _desk: Desk
    _supplied: dict[tuple[str, str], Supplied]

    def _scope(self) -> str:
        """The session that what is supplied belongs to; empty for an agent."""
        raise NotImplementedError

    def _supply(self, supplied: Supplied, spec: Mapping[str, Any]) -> None:
        if _ffi.dead():
            raise forked("host.register")
        self._desk.start()
        self._desk.supply(self._handle, self._scope(), supplied, dumps(spec, "host.register"))
        self._supplied[supplied.kind, supplied.name] = supplied

    def _withdraw(self, kind: str, name: str) -> bool:
        supplied = self._supplied.pop((kind, name), None)
        if supplied is None:
            return False
        self._desk.withdraw(self._scope(), supplied)
        return True

    if TYPE_CHECKING:
        @overload
        def register_tool(
            self, fn: F, name: str | None = None, description: str | None = None,
            read_only: bool = False, timeout_ms: int | None = None) -> F: ...

        @overload
        def register_tool(
            self, fn: None = None, name: str | None = None, description: str | None = None,
            read_only: bool = False, timeout_ms: int | None = None) -> Callable[[F], F]: ...

    def register_tool(
        self, fn: F | None = None, name: str | None = None, description: str | None = None,
        read_only: bool = False, timeout_ms: int | None = None,
    ) -> F | Callable[[F], F]:
        """Makes a function a tool of the model. Use it as a call or as a decorator::

            @session.register_tool(read_only=True)
            def weather(city: str, days: int = 1) -> str:
                '''Says what the weather will be.

                Args:
                    city: name of the city.
                    days: how many days to look ahead.
                '''

        The name, the words for the model and the schema of the arguments come from the
        function's name, docstring and type hints; ``Annotated[str, "words"]`` works too. A plain
        function runs in a worker thread; an async one runs in the loop that was running when it
        was registered, else in a loop of its own. It may call the session again. What it returns
        becomes text (JSON for anything but ``str``); return a :class:`~a3s_code.ToolResult` for an exit
        code or metadata. An exception is a failed result that the model sees. A parameter
        annotated with :class:`ToolContext` gets the context: cancellation, deadline, progress.

        Every call passes the session's permission policy under the tool's name.

        Args:
            fn: the function; leave it out to decorate.
            name: name for the model; default the function's name.
            description: words for the model; default the docstring's first paragraph.
            read_only: the tool changes nothing anywhere: it may run in parallel, and without a policy.
            timeout_ms: limit of one call in milliseconds; default the session's tool time-out, else 10 minutes.

        Raises:
            TypeError: the signature has no JSON form.
            CodeError: ALREADY_EXISTS for a taken name, SESSION_CLOSED.

        Calls a3s_host_register with kind ``tool``.
        """
        if fn is None:
            def decorate(function: F) -> F:
                return self.register_tool(function, name, description, read_only, timeout_ms)
            return decorate
        if not callable(fn):
            raise bad_type(f"register_tool takes a function, not {type(fn).__name__}", op="host.register")
        called = name or str(getattr(fn, "__name__", type(fn).__name__))
        from ._tools import tool

        self._supply(*tool(fn, called, description or "", read_only, timeout_ms))
        return fn

    def unregister_tool(self, name: str) -> bool:
        """Withdraws a tool registered here and cancels its open calls; False if there is none."""
        return self._withdraw("tool", name)

    def register_extension(
        self, kind: str, spec: Mapping[str, Any], handlers: Mapping[str, Callable[[Any, Context], Any]],
    ) -> Registration:
        """Supplies a part of any kind that the library knows, in the JSON of its operations:
        docs/extensions.md lists kinds, descriptions, parameters and results. The other methods
        are this with objects of Python.

        Args:
            kind: the kind, such as ``"context"``.
            spec: the description, with ``name`` in it.
            handlers: for each operation a function, plain or async, that gets the parameters and a
                :class:`~a3s_code.Context`, whose ``chunk`` tells pieces, and gives the result. An
                operation without one fails.

        Returns:
            What takes it back; of a store or a workspace also a value for the option that names it.

        Raises:
            CodeError: also UNSUPPORTED_OPERATION for a kind that the library does not know.
        """
        from ._extensions import register_raw

        return register_raw(self, kind, spec, handlers)

    def _name(self, given: str | None, default: str) -> str:
        """A name that those of the agent and of its session do not share."""
        if given is not None:
            return given
        return f"session-{default}" if self._scope() else default

    def unregister_extension(self, kind: str, name: str) -> bool:
        """Withdraws what was registered here and cancels what it is serving; False if there is none."""
        return self._withdraw(kind, name)

    def register_permission_checker(
        self, checker: PermissionChecker | Callable[[HostPermissionCheck], Maybe[Decision]], *,
        name: str | None = None, timeout_ms: int | None = None,
    ) -> Registration:
        """Has every tool call judged by this program. With a permission policy the strictest word
        of both counts; without one this takes the place of the default. A failure, and no answer
        within 5 seconds, is ``"deny"``.

        Args:
            checker: see :class:`~a3s_code.PermissionChecker`, or a function of its ``check``.
            name: tells several apart; default ``"checker"``, of a session ``"session-checker"``.
            timeout_ms: limit of one answer in milliseconds.
        """
        return _plain(self, "permission", self._name(name, "checker"), checker, timeout_ms=timeout_ms)

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
        self, handler: Callable[[EventLogLine], Any], *, name: str | None = None,
        level: str | None = None, timeout_ms: int | None = None,
    ) -> Registration:
        """Receives the library's log lines, one at a time. Lines that it does not take within a
        second are dropped.

        Args:
            handler: gets an object with ``level``, ``message`` and more.
            name: tells several apart; default ``"log"``, of a session ``"session-log"``.
            level: the least level, ``"debug"``, ``"info"``, ``"warn"`` or ``"error"``; default the agent's.
            timeout_ms: limit of one line in milliseconds.
        """
        return _plain(self, "log", self._name(name, "log"), handler, level=level, timeout_ms=timeout_ms)


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


def _plain(owner: ExtensionOwner, kind: str, name: str, served: Any, **spec: Any) -> Registration:
    from ._extensions import Registration, register

    return register(owner, Registration, kind, name, served, **spec)

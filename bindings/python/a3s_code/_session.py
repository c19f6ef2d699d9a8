"""A conversation in a workspace."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from . import _ffi, _wait
from ._direct import DirectTools
from ._errors import bad_type, forked
from ._events import AgentEvent, event_from
from ._live import Live
from ._owner import ExtensionOwner
from ._stream import EventStream
from ._unbuilt import UnbuiltSession
from ._wire import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Sequence

    from ._agent import Agent
    from ._context import Supplied
    from ._results import AgentResult

    #: A message object: ``{"role": ..., "content": [block, ...]}``.
    Message = Mapping[str, Any]


class ClosedFlag(int):
    """True or False, also when it is called: both ``x.is_closed`` and ``x.is_closed()`` work."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))


class Session(DirectTools, ExtensionOwner, UnbuiltSession, Live):
    """A conversation in a workspace, under a policy. Made by ``Agent.session``.

    It runs one prompt at a time: a second one meanwhile is SESSION_BUSY, never queued. Every
    method may be called from any thread. Methods that wait release the GIL and are interrupted
    by Ctrl-C; their ``_async`` twins wait in the running asyncio loop without a thread, and a
    cancelled task cancels the operation. After :meth:`close` the records stay readable and
    everything else is SESSION_CLOSED.

    Use it as a context manager (``with`` or ``async with``) to close it. A session that is
    collected is closed too. Neither saves.
    """

    def __init__(self, agent: Agent, handle: _ffi.Handle, store: object = None) -> None:
        self._agent = agent
        self._store = store  # a store in memory lives as long as somebody can reach it
        self._handle = handle
        self._desk = agent._desk
        self._supplied: dict[tuple[str, str], Supplied] = {}
        self._finalizer = weakref.finalize(self, _ffi.close_quietly, handle)
        self._finalizer.atexit = False
        info = self._now(b"session.info")
        self._info: dict[str, Any] = info

    # --- identity ---

    @property
    def session_id(self) -> str:
        """Id of the session, for ``Agent.resume_session``."""
        value: str = self._info["session_id"]
        return value

    @property
    def workspace(self) -> str:
        """The workspace's root as an absolute path."""
        value: str = self._info["workspace"]
        return value

    @property
    def init_warning(self) -> str | None:
        """What went less well when the session was opened, or None."""
        return self._info.get("init_warning") or None

    @property
    def tenant_id(self) -> str | None:
        """The label given in the options, or restored; None if there is none."""
        return self._info.get("tenant_id") or None

    @property
    def principal(self) -> str | None:
        """The label given in the options, or restored; None if there is none."""
        return self._info.get("principal") or None

    @property
    def agent_template_id(self) -> str | None:
        """The label given in the options, or restored; None if there is none."""
        return self._info.get("agent_template_id") or None

    @property
    def correlation_id(self) -> str | None:
        """The label given in the options, or restored; None if there is none."""
        return self._info.get("correlation_id") or None

    @property
    def is_closed(self) -> ClosedFlag:
        """Whether the session or its agent is closed. May be called as well."""
        return ClosedFlag(_ffi.dead() or bool(self._now(b"session.info")["closed"]))

    # --- conversation ---

    def send(self, prompt: str | Mapping[str, Any], history: Sequence[Message] | None = None) -> AgentResult:
        """Runs a prompt and waits for the answer.

        Args:
            prompt: the words, or a request object ``{"prompt": ..., "history": ...}``.
            history: if given, the whole context of this call, which then leaves the session's
                own transcript as it is; None goes on with the session's transcript.

        Raises:
            CodeError: SESSION_BUSY or SESSION_CLOSED at once; later what the run failed with, such
                as LLM_ERROR, CONTEXT_ERROR, BUDGET_EXHAUSTED or CANCELLED.

        Ctrl-C cancels the run. Operation session.send.
        """
        from ._results import AgentResult
        return AgentResult.from_wire(self._long(b"session.send", **_request(prompt, history)))

    #: Another name of :meth:`send`.
    run = send

    async def send_async(self, prompt: str | Mapping[str, Any], history: Sequence[Message] | None = None) -> AgentResult:
        """:meth:`send` for asyncio. A cancelled task cancels the run."""
        from ._results import AgentResult
        return AgentResult.from_wire(await self._later(b"session.send", **_request(prompt, history)))

    def send_request(self, request: Mapping[str, Any]) -> AgentResult:
        """:meth:`send` with a request object ``{"prompt": ..., "history": ...}``."""
        return self.send(request)

    def stream(self, prompt: str | Mapping[str, Any], history: Sequence[Message] | None = None) -> EventStream:
        """Starts a run and gives its events; returns at once. Arguments as in :meth:`send`.

        Raises:
            CodeError: SESSION_BUSY, SESSION_CLOSED, INVALID_REQUEST. What goes wrong later is the
                ``error`` event.

        Calls a3s_run_start and a3s_stream_open.
        """
        if _ffi.dead():
            raise forked("run.start")
        return EventStream(self, _ffi.run_start(self._handle, dumps(_request(prompt, history), "run.start")))

    def stream_request(self, request: Mapping[str, Any]) -> EventStream:
        """:meth:`stream` with a request object ``{"prompt": ..., "history": ...}``."""
        return self.stream(request)

    def history(self) -> list[dict[str, Any]]:
        """The transcript as message objects ``{role, content: [block, ...]}``. Operation session.history."""
        return self._list(b"session.history", "messages")

    def cancel(self) -> bool:
        """Asks the active run to stop and returns at once. False if there is none, or it was
        asked before. The run ends with an ``error`` event with code CANCELLED; a waiting
        :meth:`send` raises it. Operation session.cancel."""
        return bool(self._now(b"session.cancel")["cancelled"])

    async def cancel_async(self) -> bool:
        """:meth:`cancel` for asyncio."""
        return bool((await self._later(b"session.cancel"))["cancelled"])

    def cancel_run(self, run_id: str) -> bool:
        """Asks one run to stop; True only if it is the active one. Operation session.cancel_run."""
        return bool(self._now(b"session.cancel_run", run_id=run_id)["cancelled"])

    def save(self) -> None:
        """Writes one snapshot of the session to its store, all or nothing. Without a store it
        does nothing. Raises SESSION_ERROR. Operation session.save."""
        self._long(b"session.save")

    async def save_async(self) -> None:
        """:meth:`save` for asyncio."""
        await self._later(b"session.save")

    def close(self) -> None:
        """Ends the session: cancels its run, rejects its questions, ends its processes. Bounded
        by about 10 seconds. Does not save. May be called twice. Operation session.close."""
        self._long(b"session.close")
        self._supplied.clear()

    async def close_async(self) -> None:
        """:meth:`close` for asyncio."""
        await self._later(b"session.close")
        self._supplied.clear()

    # --- runs ---

    def runs(self) -> list[dict[str, Any]]:
        """Snapshots of the runs, oldest first: ``id``, ``status`` (created, planning, executing,
        verifying, completed, failed, cancelled), ``prompt``, ``created_at_ms``,
        ``updated_at_ms``, ``event_count``, ``result_text``, ``error``. Operation session.runs."""
        return self._list(b"session.runs", "runs")

    async def runs_async(self) -> list[dict[str, Any]]:
        """:meth:`runs` for asyncio."""
        value: list[dict[str, Any]] = (await self._later(b"session.runs"))["runs"]
        return value

    def run_snapshot(self, run_id: str) -> dict[str, Any] | None:
        """The snapshot of one run; None if it is unknown. Operation session.run_snapshot."""
        value: dict[str, Any] | None = self._now(b"session.run_snapshot", run_id=run_id).get("run")
        return value

    async def run_snapshot_async(self, run_id: str) -> dict[str, Any] | None:
        """:meth:`run_snapshot` for asyncio."""
        value: dict[str, Any] | None = (await self._later(b"session.run_snapshot", run_id=run_id)).get("run")
        return value

    def run_events(self, run_id: str) -> list[AgentEvent]:
        """The recorded events of a run that are kept; empty if it is unknown. Operation session.run_events."""
        return [event_from(e) for e in self._now(b"session.run_events", run_id=run_id)["events"]]

    async def run_events_async(self, run_id: str) -> list[AgentEvent]:
        """:meth:`run_events` for asyncio."""
        return [event_from(e) for e in (await self._later(b"session.run_events", run_id=run_id))["events"]]

    def run_event_page(self, run_id: str, after_sequence: int | None = None, limit: int = 256) -> dict[str, Any] | None:
        """A page of a run's recorded events; None if the run is unknown.

        Args:
            run_id: the run.
            after_sequence: the last number already seen; None starts at the oldest kept.
            limit: most events of the page.

        Returns:
            ``events`` (list of :class:`AgentEvent`), ``first_available_sequence``,
            ``latest_sequence_exclusive``, ``next_after_sequence`` (for the next call),
            ``retention_gap`` (wanted events are no longer kept), ``has_more``.

        Operation session.run_event_page.
        """
        return _page(self._now(b"session.run_event_page", run_id=run_id, after_sequence=after_sequence, limit=limit))

    async def run_event_page_async(self, run_id: str, after_sequence: int | None = None, limit: int = 256) -> dict[str, Any] | None:
        """:meth:`run_event_page` for asyncio."""
        return _page(await self._later(b"session.run_event_page", run_id=run_id, after_sequence=after_sequence, limit=limit))

    def current_run(self) -> dict[str, Any] | None:
        """The snapshot of the active run, or None. Operation session.current_run."""
        value: dict[str, Any] | None = self._now(b"session.current_run").get("run")
        return value

    def active_tools(self) -> list[dict[str, Any]]:
        """The tools running now: ``id``, ``name``, ``started_at_ms``. Operation session.active_tools."""
        return self._list(b"session.active_tools", "tools")

    def trace_events(self) -> list[dict[str, Any]]:
        """One record for each tool execution, oldest first. Operation session.trace_events."""
        return self._list(b"session.trace_events", "events")

    def get_artifact(self, uri: str) -> dict[str, Any] | None:
        """A long output that was kept beside the transcript, by its URI; None if there is none.
        Operation session.get_artifact."""
        value: dict[str, Any] | None = self._now(b"session.get_artifact", uri=uri).get("artifact")
        return value

    # --- questions ---

    def pending_confirmations(self) -> list[dict[str, Any]]:
        """The calls that wait for an answer: ``tool_id``, ``tool_name``, ``args``,
        ``remaining_ms``. Operation session.pending_confirmations."""
        return self._list(b"session.pending_confirmations", "pending")

    def confirm_tool_use(self, tool_id: str, approved: bool, reason: str | None = None) -> bool:
        """Answers a ``confirmation_required`` event, from any thread.

        Args:
            tool_id: ``event.tool_id``.
            approved: whether the call may run.
            reason: words that the model sees with a refusal.

        Returns:
            False if no such question is open: unknown, answered, timed out or withdrawn.

        Operation session.confirm_tool_use.
        """
        return bool(self._now(b"session.confirm_tool_use", tool_id=tool_id, approved=approved, reason=reason)["found"])

    def cancel_confirmations(self) -> int:
        """Rejects all open questions and gives their number. Operation session.cancel_confirmations."""
        return int(self._now(b"session.cancel_confirmations")["count"])

    # --- tools ---

    def tool_names(self) -> list[str]:
        """Names of the session's tools, sorted. Operation session.tool_names."""
        names: list[str] = self._now(b"session.tool_names")["names"]
        return names

    def tool_definitions(self) -> list[dict[str, Any]]:
        """The tools as the model sees them: ``name``, ``description``, ``parameters``. Operation
        session.tool_definitions."""
        return self._list(b"session.tool_definitions", "tools")

    def list_commands(self) -> list[dict[str, Any]]:
        """The slash commands: ``name``, ``description``, ``usage``, sorted by name. Operation
        session.list_commands."""
        return self._list(b"session.list_commands", "commands")

    # --- inside ---

    def _scope(self) -> str:
        return self.session_id

    def _now(self, method: bytes, /, **params: Any) -> dict[str, Any]:
        answer: dict[str, Any] = loads(_ffi.call(self._handle, method, _params(params, method))) or {}
        return answer

    def _long(self, method: bytes, /, **params: Any) -> dict[str, Any]:
        answer: dict[str, Any] = loads(_wait.call(self._handle, method, _params(params, method))) or {}
        return answer

    async def _later(self, method: bytes, /, **params: Any) -> dict[str, Any]:
        from . import _async

        data = await _async.call_async(self._agent._handle, self._handle, method, _params(params, method))
        answer: dict[str, Any] = loads(data) or {}
        return answer

    def _list(self, method: bytes, key: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._now(method)[key]
        return items

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _ffi.unless_forked(self.close)

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close_async()

    def __repr__(self) -> str:
        return f"Session({self._info['session_id']!r}, workspace={self._info['workspace']!r})"


def _request(prompt: str | Mapping[str, Any], history: Sequence[Message] | None) -> dict[str, Any]:
    """The request object of a run."""
    if isinstance(prompt, str):
        request: dict[str, Any] = {"prompt": prompt}
    elif isinstance(prompt, Mapping):
        request = {k: v for k, v in prompt.items() if v is not None}
        if not all(isinstance(k, str) for k in request):
            raise bad_type("a request object has text as keys", op="run.start")
    else:
        raise bad_type(f"prompt must be a str or a request object, not {type(prompt).__name__}", op="run.start")
    if history is None:
        return request
    messages = None if isinstance(history, (str, bytes)) or not hasattr(history, "__iter__") else list(history)
    if messages is None or not all(isinstance(m, Mapping) for m in messages):
        raise bad_type("history must be a list of messages {role, content}", op="run.start")
    return {**request, "history": [dict(m) for m in messages]}


def _params(params: dict[str, Any], method: bytes) -> bytes:
    given = {k: v for k, v in params.items() if v is not None}
    return dumps(given, method.decode()) if given else b"{}"


def _page(answer: dict[str, Any]) -> dict[str, Any] | None:
    page: dict[str, Any] | None = answer.get("page")
    return None if page is None else {**page, "events": [event_from(e) for e in page["events"]]}

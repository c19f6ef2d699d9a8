"""Tools that this program implements: what they are told, and how they are registered. How the
library's requests reach them is the desk's part."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar, overload

from . import _ffi
from ._errors import bad_type, forked
from ._wire import dumps

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

    from ._desk import Desk

F = TypeVar("F", bound=Callable[..., Any])


class Context:
    """What a function that this program supplies may know of the request it serves. Inside of
    it, and of everything it calls, ``Context.current()`` gives it.

    Attributes:
        kind: what is served, such as ``"model"`` or ``"tool"``.
        op: the operation, such as ``"stream"``.
        name: name that was registered.
        session_id: session the request belongs to; empty for none.
        deadline: when the answer stops counting, on the clock of ``time.monotonic()``; None for none.
    """

    def __init__(self, owner: int, frame: Mapping[str, Any]) -> None:
        self._owner = owner
        self._request: int = frame["request"]
        self._cancelled = threading.Event()
        self._reason = ""
        self._task: concurrent.futures.Future[Any] | None = None
        self.kind: str = frame["kind"]
        self.op: str = frame["op"]
        self.name: str = frame["name"]
        self.session_id: str = frame.get("session_id") or ""
        limit = frame.get("deadline_ms") or 0
        self.deadline: float | None = time.monotonic() + limit / 1000 if limit > 0 else None

    @staticmethod
    def current() -> Context:
        """The context of the request that is served here.

        Raises:
            LookupError: this is no function that serves one.
        """
        from ._answers import current

        return current.get()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: cancelled, or past the deadline."""
        return self._cancelled.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)

    @property
    def reason(self) -> str:
        """Why the request was cancelled; empty if it was not."""
        return self._reason

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleeps up to ``timeout`` seconds, and less when the request is cancelled; then True."""
        if self.deadline is not None:
            timeout = min(timeout, max(0.0, self.deadline - time.monotonic()))
        self._cancelled.wait(timeout)
        return self.cancelled

    def remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def _chunk(self, piece: Mapping[str, Any]) -> bool:
        return _ffi.host_chunk(self._owner, self._request, dumps(piece, "host.chunk"))

    def _cancel(self, reason: str) -> None:
        self._reason = reason
        self._cancelled.set()
        task = self._task
        if task is not None:
            task.cancel()


class ToolContext(Context):
    """What a tool may know of the call it serves. A function gets it by asking: a parameter
    of any name with the annotation ``ToolContext``.

    Attributes:
        tool_name: name the tool is registered under.
        call_id: id of the call, as in the events.
    """

    def __init__(self, owner: int, frame: Mapping[str, Any]) -> None:
        super().__init__(owner, frame)
        self.tool_name = self.name
        self.call_id: str = (frame.get("params") or {}).get("call_id") or ""

    def emit(self, text: str) -> None:
        """Tells a piece of output while the tool runs: a ``tool_output_delta`` event. What comes
        after the call has ended is dropped. Calls a3s_host_chunk."""
        self._chunk({"delta": text})


class Supplied:
    """Something of this program that the library asks. It stays registered while its session or
    agent is open."""

    kind: str
    name: str
    context: type[Context] = Context
    loop: asyncio.AbstractEventLoop | None = None
    handle = 0

    def serve(self, op: str, params: Mapping[str, Any], context: Context) -> Call:
        """How a request is answered.

        Raises:
            Exception: it cannot be; the library is told so.
        """
        raise NotImplementedError


class Call:
    """A request that is about to be answered.

    Attributes:
        is_async: whether a loop must run it.
        run: calls the function.
        result: gives the result of the operation from what the function gave.
        head: gives what is told at once of what the function gave, or None, and what follows.
        piece: gives a chunk from what an iterator gave; None if that belongs to the result.
        gather: whether an iterator is a list that is not complete yet.
    """

    __slots__ = ("is_async", "run", "result", "head", "piece", "gather")

    def __init__(
        self, is_async: bool, run: Callable[[], Any], result: Callable[[Any], dict[str, Any]],
        head: Callable[[Any], tuple[dict[str, Any] | None, Any]] | None = None,
        piece: Callable[[Any], dict[str, Any] | None] | None = None, gather: bool = False,
    ) -> None:
        self.is_async = is_async
        self.run = run
        self.result = result
        self.head = head
        self.piece = piece
        self.gather = gather


class HostTool(Supplied):
    """A function that is a tool."""

    kind = "tool"
    context = ToolContext

    def __init__(self, fn: Callable[..., Any], name: str, description: str, read_only: bool, timeout_ms: int | None) -> None:
        from ._schema import Signature  # what reads signatures is needed for tools only
        from ._workers import is_async, running_loop

        self.fn = fn
        self.name = name
        self.signature = Signature(fn, ToolContext)
        self.description = description or self.signature.description or name
        self.read_only = read_only
        self.timeout_ms = timeout_ms
        self.is_async = is_async(fn)
        self.loop = running_loop() if self.is_async else None

    def spec(self) -> dict[str, Any]:
        """The registration as the library reads it."""
        spec: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": self.signature.parameters}
        if self.read_only:
            spec["read_only"] = True
        if self.timeout_ms is not None:
            spec["timeout_ms"] = self.timeout_ms
        return spec

    def serve(self, op: str, params: Mapping[str, Any], context: Context) -> Call:
        return Call(self.is_async, lambda: self._call(context, params.get("args") or {}), _tool_result)

    def _call(self, context: Context, args: Mapping[str, Any]) -> Any:
        kwargs = self.signature.arguments(args)
        if self.signature.context is not None:
            kwargs[self.signature.context] = context
        return self.fn(**kwargs)


def _tool_result(value: Any) -> dict[str, Any]:
    from ._results import ToolResult

    if not isinstance(value, ToolResult):
        return {"output": _output(value), "exit_code": 0}
    result: dict[str, Any] = {"output": value.output, "exit_code": value.exit_code}
    if value.metadata is not None:
        result["metadata"] = value.metadata
    if value.error_kind is not None:
        result["error_kind"] = value.error_kind
    return result


def _output(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    import dataclasses
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


class ToolOwner:
    """What agents and sessions share: functions of this program as tools of the model."""

    _handle: int
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
        tool = HostTool(fn, called, description or "", read_only, timeout_ms)
        self._supply(tool, tool.spec())
        return fn

    def unregister_tool(self, name: str) -> bool:
        """Withdraws a tool registered here and cancels its open calls; False if there is none."""
        return self._withdraw("tool", name)

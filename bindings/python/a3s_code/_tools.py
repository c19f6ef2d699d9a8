"""Tools that this program implements: registration, the dispatcher that hears the library's
requests, and the threads and loops that run them."""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import sys
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar, overload

from . import _ffi
from ._errors import CodeError, bad_type, forked
from ._events import decode_batch
from ._results import ToolResult
from ._schema import Signature
from ._wire import dumps

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("a3s_code")


class ToolContext:
    """What a tool may know of the call it serves. A function gets it by asking: a parameter
    of any name with the annotation ``ToolContext``.

    Attributes:
        tool_name: name the tool is registered under.
        call_id: id of the call, as in the events.
        session_id: session the call belongs to.
        deadline: when the answer stops counting, on the clock of ``time.monotonic()``; None for none.
    """

    def __init__(self, owner: int, request: int, tool_name: str, call_id: str, session_id: str, deadline: float | None) -> None:
        self._owner = owner
        self._request = request
        self._cancelled = threading.Event()
        self._reason = ""
        self._task: concurrent.futures.Future[Any] | None = None
        self.tool_name = tool_name
        self.call_id = call_id
        self.session_id = session_id
        self.deadline = deadline

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: cancelled, or past the deadline."""
        return self._cancelled.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)

    @property
    def reason(self) -> str:
        """Why the call was cancelled; empty if it was not."""
        return self._reason

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleeps up to ``timeout`` seconds, and less when the call is cancelled; then True."""
        if self.deadline is not None:
            timeout = min(timeout, max(0.0, self.deadline - time.monotonic()))
        self._cancelled.wait(timeout)
        return self.cancelled

    def remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def emit(self, text: str) -> None:
        """Tells a piece of output while the tool runs: a ``tool_output_delta`` event. What comes
        after the call has ended is dropped. Calls a3s_host_chunk."""
        _ffi.host_chunk(self._owner, self._request, dumps({"delta": text}, "host.chunk"))

    def _cancel(self, reason: str) -> None:
        self._reason = reason
        self._cancelled.set()
        task = self._task
        if task is not None:
            task.cancel()


class HostTool:
    """A registered function. It stays registered while its session or agent is open."""

    def __init__(self, fn: Callable[..., Any], name: str, description: str, read_only: bool, timeout_ms: int | None) -> None:
        self.fn = fn
        self.name = name
        self.signature = Signature(fn, ToolContext)
        self.description = description or self.signature.description or name
        self.read_only = read_only
        self.timeout_ms = timeout_ms
        self.is_async = inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))
        self.loop = _running_loop() if self.is_async else None
        self.handle = 0

    def spec(self) -> dict[str, Any]:
        """The registration as the library reads it."""
        spec: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": self.signature.parameters}
        if self.read_only:
            spec["read_only"] = True
        if self.timeout_ms is not None:
            spec["timeout_ms"] = self.timeout_ms
        return spec

    def call(self, context: ToolContext, args: Mapping[str, Any]) -> Any:
        """Calls the function: its value, or a coroutine for an async one."""
        kwargs = self.signature.arguments(args)
        if self.signature.context is not None:
            kwargs[self.signature.context] = context
        return self.fn(**kwargs)


class ToolOwner:
    """What agents and sessions share: functions of this program as tools of the model."""

    _handle: int
    _desk: Desk
    _tools: dict[str, HostTool]

    def _tool_scope(self) -> str:
        """The session the tools belong to; empty for an agent."""
        raise NotImplementedError

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
        becomes text (JSON for anything but ``str``); return a :class:`ToolResult` for an exit
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
        if _ffi.dead():
            raise forked("host.register")
        called = name or str(getattr(fn, "__name__", type(fn).__name__))
        tool = HostTool(fn, called, description or "", read_only, timeout_ms)
        self._desk.start()
        tool.handle = _ffi.host_register(self._handle, b"tool", dumps(tool.spec(), "host.register"))
        self._tools[tool.name] = tool
        self._desk.tools[self._tool_scope(), tool.name] = tool
        return fn

    def unregister_tool(self, name: str) -> bool:
        """Withdraws a tool registered here and cancels its open calls; False if there is none."""
        tool = self._tools.pop(name, None)
        if tool is None:
            return False
        self._desk.tools.pop((self._tool_scope(), name), None)
        _ffi.close_quietly(tool.handle, 1000)
        return True


class Desk:
    """One daemon thread an agent, started at the first registration. It reads the agent's control
    stream and hands each request to a worker thread or a loop; it runs nothing itself."""

    def __init__(self, agent: int) -> None:
        self.agent = agent
        # Weak: a tool often closes over its session, and this thread must not keep that alive.
        self.tools: weakref.WeakValueDictionary[tuple[str, str], HostTool] = weakref.WeakValueDictionary()
        self._open: dict[int, ToolContext] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stream = 0
        self._stopping = False

    def start(self) -> None:
        """Starts listening, once. Requests made after it returns are heard."""
        with self._lock:
            if self._thread is not None or self._stopping:
                return
            self._stream = _ffi.stream_open(self.agent)
            self._thread = threading.Thread(target=self._listen, name="a3s-desk", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Ends the thread and cancels what is running. Late answers are dropped by the library."""
        with self._lock:
            self._stopping = True
            thread = self._thread
        if thread is None:
            return
        try:
            _ffi.stream_wake(self._stream)
        except CodeError:
            pass  # the agent is closed, which ends the stream as well
        if thread is not threading.current_thread():
            thread.join(timeout)

    def _listen(self) -> None:
        try:
            reader = _ffi.Reader(self._stream)
            while not self._stopping:
                text = reader.read(1000)
                if text is None:
                    break
                for frame in decode_batch(text):
                    self._hear_safely(frame.type, frame.payload)
        except CodeError as err:
            log.debug("the control stream ended: %s", err)
        finally:
            _ffi.close_quietly(self._stream)
            for context in list(self._open.values()):
                context._cancel("the agent was closed")

    def _hear_safely(self, type: str, frame: dict[str, Any]) -> None:
        try:
            self._hear(type, frame)
        except Exception as err:  # one bad request must not leave all later ones unheard
            log.debug("request not served", exc_info=err)
            if type == "host_request":
                self._answer(frame["request"], _failure(err.__class__.__name__, str(err)))

    def _hear(self, type: str, frame: dict[str, Any]) -> None:
        if type == "host_cancel":
            context = self._open.pop(frame["request"], None)
            if context is not None:
                context._cancel(frame.get("reason") or "cancelled")
        elif type == "host_request" and frame.get("kind") == "tool":
            self._begin(frame)

    def _find(self, session_id: str, name: str) -> HostTool | None:
        tool = self.tools.get((session_id, name)) or self.tools.get(("", name))
        if tool is None:  # a child session calls a tool of its parent
            tool = next((t for (_, n), t in list(self.tools.items()) if n == name), None)
        return tool

    def _begin(self, frame: dict[str, Any]) -> None:
        request, params = frame["request"], frame.get("params") or {}
        session_id = frame.get("session_id") or ""
        tool = self._find(session_id, frame["name"])
        if tool is None:
            self._answer(request, _failure("LookupError", f"tool {frame['name']!r} is no longer there"))
            return
        limit = frame.get("deadline_ms") or 0
        context = ToolContext(
            self.agent, request, tool.name, params.get("call_id") or "", session_id,
            time.monotonic() + limit / 1000 if limit > 0 else None)
        self._open[request] = context
        args = params.get("args") or {}
        if not tool.is_async:
            _workers.submit(lambda: self._run(tool, context, args))
            return
        import asyncio

        coroutine = self._run_async(tool, context, args)
        loop = tool.loop if tool.loop is not None and tool.loop.is_running() else _private_loop()
        try:
            context._task = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            coroutine.close()
            raise
        if context.cancelled:
            context._cancel(context.reason)

    def _run(self, tool: HostTool, context: ToolContext, args: Any) -> None:
        try:
            answer = _success(tool.call(context, args))
        except BaseException as err:
            answer = _raised(tool, err)
        self._end(context, answer)

    async def _run_async(self, tool: HostTool, context: ToolContext, args: Any) -> None:
        try:
            answer = _success(await tool.call(context, args))
        except BaseException as err:
            answer = _raised(tool, err)
        self._end(context, answer)

    def _end(self, context: ToolContext, answer: bytes) -> None:
        self._open.pop(context._request, None)
        context._task = None
        self._answer(context._request, answer)

    def _answer(self, request: int, answer: bytes) -> None:
        try:
            if not _ffi.host_reply(self.agent, request, answer):
                log.debug("the answer to request %d came too late", request)
        except CodeError as err:
            log.debug("the answer to request %d was not taken: %s", request, err)


def _success(value: Any) -> bytes:
    result: dict[str, Any]
    if isinstance(value, ToolResult):
        result = {"output": value.output, "exit_code": value.exit_code}
        if value.metadata is not None:
            result["metadata"] = value.metadata
        if value.error_kind is not None:
            result["error_kind"] = value.error_kind
    else:
        result = {"output": _output(value), "exit_code": 0}
    return dumps({"result": result}, "host.reply")


def _output(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


def _raised(tool: HostTool, err: BaseException) -> bytes:
    log.debug("tool %s failed", tool.name, exc_info=err)
    name = "Cancelled" if type(err).__name__ == "CancelledError" else type(err).__name__
    return _failure(name, str(err) or name)


def _failure(name: str, message: str) -> bytes:
    safe = message.encode("utf-8", "replace").decode()
    return dumps({"error": {"type": name, "message": safe}}, "host.reply")


class _Workers:
    """Daemon threads that run plain functions: at most 64, idle ones are used again. Daemons,
    because a tool that hangs must not keep the interpreter from ending."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Forgets all threads: a forked child has none of them."""
        self._ready = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job soon."""
        with self._ready:
            self._jobs.append(job)
            if self._idle >= len(self._jobs) or self._threads >= self._limit:
                self._ready.notify()
                return
            self._threads += 1
        threading.Thread(target=self._work, name="a3s-tool", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._ready:
                self._idle += 1
                while not self._jobs:
                    if not self._ready.wait(30) and not self._jobs:
                        self._idle -= 1
                        self._threads -= 1
                        return
                self._idle -= 1
                job = self._jobs.popleft()
            job()
            del job


_workers = _Workers()
_loop_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def _private_loop() -> asyncio.AbstractEventLoop:
    """The loop of async tools that were registered outside of any."""
    import asyncio

    global _loop
    with _loop_lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="a3s-loop", daemon=True).start()
        return _loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    if "asyncio" not in sys.modules:  # then none can run
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

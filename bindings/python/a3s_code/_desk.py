"""The dispatcher that hears the library's requests to tools of this program, and the threads and
loops that run them."""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Callable

from . import _ffi
from ._errors import CodeError
from ._events import decode_batch
from ._tools import HostTool, ToolContext
from ._wire import dumps

if TYPE_CHECKING:
    import asyncio
    import logging



def _log() -> logging.Logger:
    import logging  # only a tool that goes wrong needs it
    return logging.getLogger("a3s_code")


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
            _log().debug("the control stream ended: %s", err)
        finally:
            _ffi.close_quietly(self._stream)
            for context in list(self._open.values()):
                context._cancel("the agent was closed")

    def _hear_safely(self, type: str, frame: dict[str, Any]) -> None:
        try:
            self._hear(type, frame)
        except Exception as err:  # one bad request must not leave all later ones unheard
            _log().debug("request not served", exc_info=err)
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
                _log().debug("the answer to request %d came too late", request)
        except CodeError as err:
            _log().debug("the answer to request %d was not taken: %s", request, err)


def _success(value: Any) -> bytes:
    result: dict[str, Any]
    from ._results import ToolResult
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
    import dataclasses
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


def _raised(tool: HostTool, err: BaseException) -> bytes:
    _log().debug("tool %s failed", tool.name, exc_info=err)
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

"""The dispatcher that hears what the library asks of this program, and has it answered."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, AsyncIterator

from . import _ffi
from ._errors import CodeError, ExtensionError
from ._events import decode_batch
from ._tools import Call, Context, Supplied, _current
from ._wire import dumps
from ._workers import private_loop, workers

if TYPE_CHECKING:
    import logging


def _log() -> logging.Logger:
    import logging  # only what goes wrong needs it
    return logging.getLogger("a3s_code")


class Desk:
    """One daemon thread an agent, started at the first registration. It reads the agent's control
    stream and hands each request to a worker thread or a loop; it runs nothing itself."""

    def __init__(self, agent: int) -> None:
        self.agent = agent
        # By kind, session and name. Weak: a function often closes over its session, and this
        # thread must not keep that alive.
        self._supplied: weakref.WeakValueDictionary[tuple[str, str, str], Supplied] = weakref.WeakValueDictionary()
        self._open: dict[int, Context] = {}
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

    def supply(self, owner: int, scope: str, supplied: Supplied, spec: bytes) -> None:
        """Registers something; requests find it from then on."""
        key = supplied.kind, scope, supplied.name
        free = key not in self._supplied
        if free:  # the first request may come before the library has said yes
            self._supplied[key] = supplied
        try:
            supplied.handle = _ffi.host_register(owner, supplied.kind.encode(), spec)
        except BaseException:
            if free:
                self._supplied.pop(key, None)
            raise
        self._supplied[key] = supplied

    def withdraw(self, scope: str, supplied: Supplied) -> None:
        """Takes something back; what it is serving is cancelled."""
        key = supplied.kind, scope, supplied.name
        if self._supplied.get(key) is supplied:
            self._supplied.pop(key, None)
        _ffi.close_quietly(supplied.handle, 1000)

    # --- hearing ---

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
                self._open.pop(frame["request"], None)
                self._answer(frame["request"], _failure(err))

    def _hear(self, type: str, frame: dict[str, Any]) -> None:
        if type == "host_cancel":
            context = self._open.pop(frame["request"], None)
            if context is not None:
                context._cancel(frame.get("reason") or "cancelled")
        elif type == "host_request":
            self._begin(frame)

    def _find(self, kind: str, session_id: str, name: str) -> Supplied:
        found = self._supplied.get((kind, session_id, name)) or self._supplied.get((kind, "", name))
        if found is None:  # a child session asks what its parent has
            found = next((s for (k, _, n), s in list(self._supplied.items()) if (k, n) == (kind, name)), None)
        if found is None:
            raise LookupError(f"{kind} {name!r} is no longer there")
        return found

    def _begin(self, frame: dict[str, Any]) -> None:
        supplied = self._find(frame["kind"], frame.get("session_id") or "", frame["name"])
        context = supplied.context(self.agent, frame)
        call = supplied.serve(context.op, frame.get("params") or {}, context)
        self._open[context._request] = context
        if call.is_async:
            self._spawn(supplied, context, call)
        else:
            workers.submit(lambda: self._run(supplied, context, call))

    # --- answering ---

    def _run(self, supplied: Supplied, context: Context, call: Call) -> None:
        token = _current.set(context)
        try:
            value = call.run()
            if _needs_loop(value):
                self._spawn(supplied, context, call._replace(run=lambda: value))
                return
            answer = dumps({"result": call.result(_consume(context, call, value))}, "host.reply")
        except BaseException as err:
            answer = _raised(context, err)
        finally:
            _current.reset(token)
        self._end(context, answer)

    def _spawn(self, supplied: Supplied, context: Context, call: Call) -> None:
        import asyncio

        coroutine = self._run_async(context, call)
        loop = supplied.loop if supplied.loop is not None and supplied.loop.is_running() else private_loop()
        try:
            context._task = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            coroutine.close()
            raise
        if context._cancelled.is_set():
            context._cancel(context.reason)

    async def _run_async(self, context: Context, call: Call) -> None:
        _current.set(context)  # in the task's own copy
        try:
            value = call.run()
            if hasattr(value, "__await__"):
                value = await value
            answer = dumps({"result": call.result(await _consume_async(context, call, value))}, "host.reply")
        except BaseException as err:
            answer = _raised(context, err)
        self._end(context, answer)

    def _end(self, context: Context, answer: bytes) -> None:
        self._open.pop(context._request, None)
        context._task = None
        if context.remaining() == 0.0:
            # The library's clock decides what becomes of the request, not whose thread is faster.
            _log().debug("%s %s answered after its deadline", context.kind, context.name)
            return
        self._answer(context._request, answer)

    def _answer(self, request: int, answer: bytes) -> None:
        try:
            if not _ffi.host_reply(self.agent, request, answer):
                _log().debug("the answer to request %d came too late", request)
        except CodeError as err:
            _log().debug("the answer to request %d was not taken: %s", request, err)


class _Withdrawn(Exception):
    """Nobody waits for the rest of an answer."""


def _needs_loop(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(hasattr(v, "__aiter__") for v in value)
    return hasattr(value, "__await__") or hasattr(value, "__aiter__")


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, (str, bytes, bytearray, tuple, Mapping))


def _consume(context: Context, call: Call, value: Any) -> Any:
    """What the result is made of; what an iterator gives before is told as chunks."""
    if call.head is not None:
        first, value = call.head(value)
        if first is not None and not context._chunk(first):
            raise _Withdrawn
    if call.gather and _is_iterable(value):
        return list(value)
    if call.piece is None or not _is_iterable(value):
        return value
    end: Any = None
    try:
        iterator = iter(value)
        while True:
            try:
                item = next(iterator)
            except StopIteration as stop:
                return _joined(end, stop.value)
            piece = call.piece(item)
            if piece is None:
                end = _joined(end, item)
            elif context.cancelled or not context._chunk(piece):
                raise _Withdrawn
    finally:
        close = getattr(value, "close", None)
        if close is not None:
            close()


async def _consume_async(context: Context, call: Call, value: Any) -> Any:
    if call.head is not None:
        first, value = call.head(value)
        if first is not None and not await _chunk_async(context, first):
            raise _Withdrawn
    if not hasattr(value, "__aiter__"):
        if call.piece is None or not _is_iterable(value):
            return list(value) if call.gather and _is_iterable(value) else value
        value = _in_loop(value)
    if call.piece is None and not call.gather:
        raise TypeError(f"{context.kind}/{context.op} cannot be answered in pieces")
    gathered: list[Any] = []
    end: Any = None
    try:
        async for item in value:
            piece = call.piece(item) if call.piece is not None else None
            if call.gather:
                gathered.append(item)
            elif piece is None:
                end = _joined(end, item)
            elif context.cancelled or not await _chunk_async(context, piece):
                raise _Withdrawn
    finally:
        close = getattr(value, "aclose", None)
        if close is not None:
            await close()
    return gathered if call.gather else end


async def _in_loop(items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


def _joined(end: Any, more: Any) -> Any:
    if isinstance(end, Mapping) and isinstance(more, Mapping):
        return {**end, **more}
    return end if more is None else more


async def _chunk_async(context: Context, piece: dict[str, Any]) -> bool:
    """Handing a chunk in waits while the library is behind, and a loop must not."""
    import asyncio
    import concurrent.futures

    told: concurrent.futures.Future[bool] = concurrent.futures.Future()

    def tell() -> None:
        if not told.set_running_or_notify_cancel():
            return
        try:
            told.set_result(context._chunk(piece))
        except BaseException as err:
            told.set_exception(err)

    workers.submit(tell)
    return await asyncio.wrap_future(told)


# --- failures ---

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (FileNotFoundError, "not_found"), (FileExistsError, "exists"), (PermissionError, "denied"),
    (NotADirectoryError, "invalid"), (IsADirectoryError, "invalid"), (NotImplementedError, "unsupported"),
)


def _raised(context: Context, err: BaseException) -> bytes:
    _log().debug("%s %s failed", context.kind, context.name, exc_info=err)
    return _failure(err)


def _failure(err: BaseException) -> bytes:
    name = type(err).__name__
    if name == "CancelledError" or isinstance(err, _Withdrawn):
        name = "Cancelled"
    said: dict[str, Any] = {"type": name, "message": (str(err) or name).encode("utf-8", "replace").decode()}
    kind = next((kind for cls, kind in _KINDS if isinstance(err, cls)), None)
    if isinstance(err, (ExtensionError, CodeError)):
        kind = err.kind
        if err.retryable:
            said["retryable"] = True
        if isinstance(err, ExtensionError) and err.retry_after_ms is not None:
            said["retry_after_ms"] = err.retry_after_ms
    if kind:
        said["kind"] = kind
    try:
        details = {"details": err.details} if isinstance(err, (ExtensionError, CodeError)) and err.details else {}
        return dumps({"error": {**said, **details}}, "host.reply")
    except CodeError:  # what is said beside the words is not worth losing them
        return dumps({"error": {"type": name, "message": said["message"]}}, "host.reply")

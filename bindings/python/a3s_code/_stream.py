"""The events of one run, for ``for`` and for ``async for``."""

from __future__ import annotations

import threading
import weakref

from . import _ffi
from ._errors import CodeError, bad_type
from ._events import AgentEvent, decode_batch
from ._live import Live
from ._wait import SLICE_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import AsyncIterator, Callable, Iterator

    from ._async import Watch
    from ._session import Session


def _free(stream: _ffi.Handle, run: _ffi.Handle) -> None:
    _ffi.close_quietly(stream)
    _ffi.close_quietly(run)


class EventStream(Live):
    """The events of one run in order, from its first to its terminal one.

    Iterate with ``for`` or ``async for``, once, from one thread or task at a time. The last
    event is ``agent_end`` or ``error``; after it the session is free for the next prompt. A run
    that fails ends with an ``error`` event, not with an exception.

    Between events a ``for`` waits with the GIL released and is interrupted by Ctrl-C within
    50 ms; an ``async for`` waits in the event loop, without a thread.

    Leaving the loop early closes the stream, not the run: the run goes on and holds the session.
    Call :meth:`cancel` to stop it. A task that is cancelled in its ``async for``, or in an
    ``async with`` of the stream, cancels the run. The session's events stay readable with
    ``Session.run_events``.

    Raises while iterating:
        CodeError: INVALID_HANDLE or SESSION_CLOSED when the agent was closed meanwhile, FORKED
            in a forked child.
    """

    def __init__(self, session: Session, run: _ffi.Handle) -> None:
        self._session = session  # a session that is collected would take its run along
        self._run = run
        try:
            self._stream = _ffi.stream_open(run)
            self._fd = _ffi.stream_fd(self._stream)
            self._reader = _ffi.Reader(self._stream)
        except BaseException:
            _ffi.close_quietly(run)
            raise
        self._finalizer = weakref.finalize(self, _free, self._stream, run)
        self._finalizer.atexit = False
        self._batch: Iterator[AgentEvent] = iter(())
        self._closed = False
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._rushed = False

    # --- for ---

    def __iter__(self) -> Iterator[AgentEvent]:
        try:
            while True:
                yield from self._batch
                if not self._fill():
                    return
        finally:
            self.close()

    def __next__(self) -> AgentEvent:
        while True:
            for event in self._batch:
                return event
            if not self._fill():
                self.close()
                raise StopIteration

    def _fill(self) -> bool:
        """Waits for a batch; False at the end."""
        took = self._take(0)  # keeps the GIL
        while took is False:
            took = self._take(SLICE_MS)
        return took is not None

    def _take(self, timeout_ms: int) -> bool | None:
        """Reads a batch; False if there is none yet, None at the end."""
        if self._closed:
            return None
        try:
            text = self._reader.read(timeout_ms)
        except CodeError:
            if self._closed or _ffi.exiting:  # by another thread, a moment ago, or with the interpreter
                return None
            raise
        if text:
            self._batch = iter(decode_batch(text))
        return None if text is None else bool(text)

    # --- async for ---

    async def __aiter__(self) -> AsyncIterator[AgentEvent]:
        try:
            while True:
                for event in self._batch:
                    yield event
                if not await self._fill_async():
                    return
        except GeneratorExit:
            raise
        except BaseException as err:
            self._give_up(err)
            raise
        finally:
            self.close()

    async def __anext__(self) -> AgentEvent:
        while True:
            for event in self._batch:
                return event
            if not await self._fill_async():
                self.close()
                raise StopAsyncIteration

    async def _fill_async(self) -> bool:
        from . import _async

        if self._rushed:
            await _async.breathe()  # a fast run does not starve the other tasks
        took = self._take(0)
        self._rushed = bool(took)
        while took is False:
            watch = self._watched(_async.watch)
            took = None if watch is None else await watch.wait()
        return took is not None

    def _watched(self, make: Callable[[Watch | None, int, Callable[[int], bool | None]], Watch]) -> Watch | None:
        with self._lock:
            if self._closed:
                return None
            self._watch = make(self._watch, self._fd, self._take)
            return self._watch

    def _give_up(self, err: BaseException | None) -> None:
        from . import _async

        if not _async.is_cancelled(err):
            return
        try:
            self.cancel("the task was cancelled")
        except CodeError:
            pass  # its agent is closed, which has stopped the run

    # --- the rest ---

    def cancel(self, reason: str = "") -> None:
        """Asks the run to stop; it ends with one ``error`` event with code CANCELLED.

        Returns at once; does nothing if the run or this stream has ended. Calls a3s_run_cancel.
        """
        if not isinstance(reason, str):
            raise bad_type(f"reason must be a str, not {type(reason).__name__}", op="run.cancel")
        if self._finalizer.alive:
            _ffi.run_cancel(self._run, reason.encode("utf-8", "replace"))

    def close(self) -> None:
        """Ends this stream. The run goes on. May be called twice, and from any thread."""
        with self._lock:
            self._closed = True
            self._batch = iter(())
            watch, self._watch = self._watch, None
        if watch is None:
            self._finalizer()
        else:  # the descriptor may go only after the loop has let go of it
            watch.stop(self._finalizer)

    async def aclose(self) -> None:
        """:meth:`close`, for ``contextlib.aclosing``."""
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the stream has ended or was closed."""
        return self._closed

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> EventStream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._give_up(error)
        self.close()

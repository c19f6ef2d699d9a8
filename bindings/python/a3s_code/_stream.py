"""The events of one run, for ``for`` and for ``async for``."""

from __future__ import annotations

import select
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, AsyncIterator, Iterator

from . import _ffi
from ._errors import CodeError
from ._events import AgentEvent, decode_batch

if TYPE_CHECKING:
    import asyncio

    from ._session import Session

_POLL_MS = 100


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _free(stream: int, run: int) -> None:
    _ffi.close_quietly(stream)
    _ffi.close_quietly(run)


class EventStream:
    """The events of one run in order, from its first to its terminal one.

    Iterate with ``for`` or ``async for``, once, from one thread or task at a time. The last
    event is ``agent_end`` or ``error``; after it the session is free for the next prompt. A run
    that fails ends with an ``error`` event, not with an exception.

    Between events a ``for`` waits with the GIL released and is interrupted by Ctrl-C within
    100 ms; an ``async for`` waits in the event loop, without a thread.

    Leaving the loop early closes the stream, not the run: the run goes on and holds the session.
    Call :meth:`cancel` to stop it. The session's events stay readable with
    ``Session.run_events``.

    Raises while iterating:
        CodeError: INVALID_HANDLE or SESSION_CLOSED when the agent was closed meanwhile, FORKED
            in a forked child.
    """

    def __init__(self, session: Session, run: int) -> None:
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
        self._sleeper: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

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
        poll: select.poll | None = None
        while True:
            text = self._read()
            if text is None:
                return False
            if text:
                self._batch = iter(decode_batch(text))
                return True
            if poll is None:
                poll = select.poll()
                poll.register(self._fd, select.POLLIN)
            poll.poll(_POLL_MS)

    def _read(self) -> str | None:
        if self._closed:
            return None
        try:
            return self._reader.read()
        except CodeError:
            if self._closed or _ffi.exiting:  # by another thread, a moment ago, or with the interpreter
                return None
            raise

    # --- async for ---

    async def __aiter__(self) -> AsyncIterator[AgentEvent]:
        try:
            while True:
                for event in self._batch:
                    yield event
                if not await self._fill_async():
                    return
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

        await _async.breathe()  # a fast run does not starve the other tasks
        while True:
            text = self._read()
            if text is None:
                return False
            if text:
                self._batch = iter(decode_batch(text))
                return True
            try:
                await _async.readable(self._fd, self._falls_asleep)
            finally:
                self._wakes_up()

    def _falls_asleep(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> bool:
        with self._lock:
            if not self._closed:
                self._sleeper = (loop, waiter)
            return not self._closed

    def _wakes_up(self) -> None:
        with self._lock:
            self._sleeper = None
            closed = self._closed
        if closed:
            self._finalizer()

    # --- the rest ---

    def cancel(self, reason: str = "") -> None:
        """Asks the run to stop; it ends with one ``error`` event with code CANCELLED.

        Returns at once; does nothing if the run or this stream has ended. Calls a3s_run_cancel.
        """
        if self._finalizer.alive:
            _ffi.run_cancel(self._run, reason.encode("utf-8", "replace"))

    def close(self) -> None:
        """Ends this stream. The run goes on. May be called twice, and from any thread."""
        with self._lock:
            self._closed = True
            self._batch = iter(())
            sleeper = self._sleeper
        if sleeper is None:
            self._finalizer()
            return
        # The descriptor may go only after the loop let go of it; the sleeping task does both.
        try:
            sleeper[0].call_soon_threadsafe(_wake, sleeper[1])
        except RuntimeError:  # that loop is closed
            self._finalizer()

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
        self.close()

"""Waiting for the library: interruptible by Ctrl-C in threads, without threads in asyncio.

A blocking wait is cut in slices, because Python delivers a signal only between them. A
coroutine waits on a descriptor that the library makes readable, so no helper thread exists.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import Any, Awaitable, Callable, TypeVar

from . import _ffi
from ._errors import CodeError
from ._events import decode_batch

T = TypeVar("T")

SLICE_MS = 50


def call(handle: int, method: bytes, params: bytes) -> bytes:
    """Runs an operation that may take long. An interrupt cancels it."""
    number = _ffi.call_start(handle, method, params)
    try:
        while True:
            data = _ffi.call_wait(handle, number, SLICE_MS)
            if data is not None:
                return data
    except CodeError:
        raise
    except BaseException:
        # One more slice, so that a cancelled run has let go of its session when the caller goes on.
        try:
            _ffi.call_cancel(handle, number)
            _ffi.call_wait(handle, number, SLICE_MS)
        except CodeError:
            pass
        raise


def interruptible(fn: Callable[[], T], undo: Callable[[T], object] = lambda _: None) -> T:
    """Runs a blocking function that cannot be cut in slices. In the main thread it runs in a
    helper thread; an interrupt leaves it there, and undo gets what it gives in the end."""
    if threading.current_thread() is not threading.main_thread():
        return fn()
    job = _Job(fn, undo)
    threading.Thread(target=job.run, name="a3s-open", daemon=True).start()
    try:
        while not job.done.wait(SLICE_MS / 1000):
            pass
    except BaseException:
        job.abandon()
        raise
    value: T = job.result()
    return value


class _Job:
    def __init__(self, fn: Callable[[], Any], undo: Callable[[Any], object]) -> None:
        self.fn, self.undo = fn, undo
        self.done = threading.Event()
        self.lock = threading.Lock()
        self.abandoned = False
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            value = self.fn()
        except BaseException as err:
            self.error = err
        else:
            with self.lock:
                self.value = value
                if self.abandoned:
                    self.undo(value)
        self.done.set()

    def abandon(self) -> None:
        with self.lock:
            if self.done.is_set() and self.error is None:
                self.undo(self.value)
            self.abandoned = True

    def result(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.value


def wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Results:
    """Started operations of one agent that coroutines of one loop wait for.

    The control stream is open while something is awaited, and only then, so that nothing
    gathers behind it.
    """

    def __init__(self, agent: int) -> None:
        self._agent = agent
        self._waiting: dict[int, tuple[int, asyncio.Future[None]]] = {}
        self._stream = 0
        self._fd = -1
        self._reader: _ffi.Reader | None = None

    async def call(self, handle: int, method: bytes, params: bytes) -> bytes:
        """Runs an operation. A cancelled task cancels it."""
        loop = asyncio.get_running_loop()
        self._listen(loop)
        try:
            number = _ffi.call_start(handle, method, params)
            done: asyncio.Future[None] = loop.create_future()
            self._waiting[number] = (handle, done)
        except BaseException:
            self._rest(loop)
            raise
        try:
            await done
        except asyncio.CancelledError:
            # The frame still comes; _told takes the result then, so that it is not kept for ever.
            if number in self._waiting:
                _ffi.call_cancel(handle, number)
            raise
        data = _ffi.call_wait(handle, number, 0)
        while data is None:
            await asyncio.sleep(0.001)
            data = _ffi.call_wait(handle, number, 0)
        return data

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._reader is None:
            self._stream = _ffi.stream_open(self._agent)
            self._fd = _ffi.stream_fd(self._stream)
            self._reader = _ffi.Reader(self._stream, cap=16 << 10)
            loop.add_reader(self._fd, self._told, loop)

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._reader is not None and not self._waiting:
            loop.remove_reader(self._fd)
            _ffi.close_quietly(self._stream)
            self._reader = None

    def _told(self, loop: asyncio.AbstractEventLoop) -> None:
        reader = self._reader
        while reader is not None:
            try:
                text = reader.read()
            except CodeError:
                text = None
            if text is None:  # the agent is gone, and its calls with it: each learns why from its own handle
                for number in list(self._waiting):
                    self._settle(number)
                break
            if not text:
                break
            for frame in decode_batch(text):
                if frame.type == "call_result":
                    self._settle(frame.payload["call"])
        self._rest(loop)

    def _settle(self, number: int) -> None:
        handle, done = self._waiting.pop(number, (0, None))
        if done is None:
            return
        if not done.done():
            done.set_result(None)
            return
        try:
            _ffi.call_wait(handle, number, 0)
        except CodeError:
            pass


_results: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Results]] = weakref.WeakKeyDictionary()


async def call_async(agent: int, handle: int, method: bytes, params: bytes) -> bytes:
    """Runs an operation of an agent or of one of its sessions without blocking the loop."""
    agents = _results.setdefault(asyncio.get_running_loop(), {})
    results = agents.setdefault(agent, Results(agent))
    try:
        return await results.call(handle, method, params)
    finally:
        if not results._waiting:
            agents.pop(agent, None)

"""Waiting in asyncio: on a descriptor that the library makes readable, without helper threads.

Nothing imports this module before the first coroutine runs: loading asyncio takes longer than
loading the library.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Callable, TypeVar

from . import _ffi
from ._errors import CodeError
from ._events import decode_batch

T = TypeVar("T")

# How long a cancelled task waits, in seconds, until its operation has stopped.
_SETTLE = 2.0
# A result is there before it is told; the milliseconds are for a library that thinks otherwise.
_SLACK_MS = 10


def in_executor(fn: Callable[[], T]) -> asyncio.Future[T]:
    """Runs what the library offers as one blocking call in a thread of the loop's default executor."""
    return asyncio.get_running_loop().run_in_executor(None, fn)


async def readable(fd: int, began: Callable[[asyncio.AbstractEventLoop, asyncio.Future[None]], bool]) -> None:
    """Waits until a descriptor is readable. ``began`` is told what would wake this, and says
    whether to wait at all; the descriptor may go only after this has returned."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    if not began(loop, waiter):
        return
    loop.add_reader(fd, wake, waiter)
    try:
        await waiter
    finally:
        loop.remove_reader(fd)


async def breathe() -> None:
    """Lets the other tasks run."""
    await asyncio.sleep(0)


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
        self._waiting: dict[int, tuple[int, asyncio.Future[bytes]]] = {}
        self._stream = 0
        self._fd = -1
        self._reader: _ffi.Reader | None = None

    async def call(self, handle: int, method: bytes, params: bytes) -> bytes:
        """Runs an operation. A cancelled task cancels it."""
        loop = asyncio.get_running_loop()
        self._listen(loop)
        try:
            number = _ffi.call_start(handle, method, params)
        except BaseException:
            self._rest(loop)
            raise
        done: asyncio.Future[bytes] = loop.create_future()
        self._waiting[number] = (handle, done)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(lambda d: d.exception())  # nobody else will look at it
            if not done.done():
                # What was asked to stop has stopped when the task ends, or is given up.
                _ffi.call_cancel(handle, number)
                await asyncio.wait({done}, timeout=_SETTLE)
            raise

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._reader is None:
            self._stream = _ffi.stream_open(self._agent)
            self._fd = _ffi.stream_fd(self._stream)
            self._reader = _ffi.Reader(self._stream, cap=16 << 10)
            loop.add_reader(self._fd, self._told, loop)
            # A loop may be closed with operations under way.
            self._finalizer = weakref.finalize(loop, _ffi.close_quietly, self._stream)
            self._finalizer.atexit = False

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._reader is not None and not self._waiting:
            loop.remove_reader(self._fd)
            self._finalizer()
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
        if number not in self._waiting:  # another loop's, or a thread's
            return
        handle, done = self._waiting.pop(number)
        try:
            data = _ffi.call_wait(handle, number, _SLACK_MS)
        except CodeError as err:
            done.set_exception(err)
        else:
            done.set_result(data if data is not None else b"")


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

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

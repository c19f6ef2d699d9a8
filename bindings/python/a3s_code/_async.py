"""Waiting in asyncio: on a descriptor that the library makes readable, without helper threads.

Nothing imports this module before the first coroutine runs: loading asyncio takes longer than
loading the library.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Callable, TypeVar

from . import _ffi
from ._errors import CodeError, refuse
from ._events import decode_batch

T = TypeVar("T")

# How long a cancelled task waits, in seconds, until its operation has stopped.
_SETTLE = 2.0
# A result is there before it is told; the milliseconds are for a library that thinks otherwise.
_SLACK_MS = 10


def running_loop() -> asyncio.AbstractEventLoop:
    """The loop of asyncio that runs here.

    Raises:
        CodeError: UNSUPPORTED_OPERATION, also a ``RuntimeError`` as that of asyncio: none does.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise refuse(
            "UNSUPPORTED_OPERATION", "async", "no event loop of asyncio runs here: await this in a coroutine of asyncio; "
            "with another framework use the method without _async, or a plain for, in a thread, such as trio.to_thread.run_sync") from None


def in_executor(fn: Callable[[], T]) -> asyncio.Future[T]:
    """Runs what the library offers as one blocking call in a thread of the loop's default executor."""
    return running_loop().run_in_executor(None, fn)


async def breathe() -> None:
    """Lets the other tasks run."""
    running_loop()
    await asyncio.sleep(0)


def is_cancelled(err: BaseException | None) -> bool:
    """Whether a task ends because it was cancelled."""
    return isinstance(err, asyncio.CancelledError)


class Watch:
    """Takes from a stream when its descriptor becomes readable.

    The loop knows the descriptor from the first wait on and takes by itself, so that an event
    costs no more than one turn of the loop. It forgets it when something comes that nobody waits
    for. What was taken is the stream's, not the waiter's: a wait that is cancelled loses nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[int], bool | None]) -> None:
        self.loop = loop
        self._fd = fd
        self._take = take
        self._waiter: asyncio.Future[bool | None] | None = None
        self._known = False

    async def wait(self) -> bool | None:
        """Waits until something was taken; None at the end.

        Raises:
            CodeError: SESSION_BUSY if another task waits.
        """
        if self._waiter is not None:
            raise refuse("SESSION_BUSY", "stream.next", "another task reads this stream: a stream has one reader")
        waiter: asyncio.Future[bool | None] = self.loop.create_future()
        self._waiter = waiter
        if not self._known:
            self.loop.add_reader(self._fd, self._readable)
            self._known = True
        try:
            return await waiter
        except BaseException:
            self._forget()
            raise
        finally:
            self._waiter = None

    def stop(self, then: Callable[[], object]) -> None:
        """Ends the wait and forgets the descriptor, after that calls ``then``. From any thread."""
        if not self.loop.is_running() or _running() is self.loop:
            self._stop(then)
            return
        try:
            self.loop.call_soon_threadsafe(self._stop, then)
        except RuntimeError:  # closed a moment ago
            then()

    def _stop(self, then: Callable[[], object]) -> None:
        self._forget()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        then()

    def _forget(self) -> None:
        if self._known and not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
        self._known = False

    def _readable(self) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            self._forget()
            return
        try:
            took = self._take(0)
        except Exception as err:
            waiter.set_exception(err)
            return
        if took is not False:
            waiter.set_result(took)


def watch(old: Watch | None, fd: int, take: Callable[[int], bool | None]) -> Watch:
    """The watch of the running loop: the one there is, or a new one."""
    loop = running_loop()
    if old is not None and old.loop is loop:
        return old
    if old is not None:
        old.stop(lambda: None)
    return Watch(loop, fd, take)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Results:
    """Started operations of one agent that coroutines of one loop wait for.

    The control stream is open while something is awaited, and only then, so that nothing
    gathers behind it.
    """

    def __init__(self, agent: _ffi.Handle) -> None:
        self._agent = agent
        self._waiting: dict[int, tuple[_ffi.Handle, asyncio.Future[bytes]]] = {}
        self._stream = _ffi.NONE
        self._fd = -1
        self._reader: _ffi.Reader | None = None

    async def call(self, handle: _ffi.Handle, method: bytes, params: bytes) -> bytes:
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


async def call_async(agent: _ffi.Handle, handle: _ffi.Handle, method: bytes, params: bytes) -> bytes:
    """Runs an operation of an agent or of one of its sessions without blocking the loop."""
    agents = _results.setdefault(running_loop(), {})
    results = agents.setdefault(agent.value, Results(agent))
    try:
        return await results.call(handle, method, params)
    finally:
        if not results._waiting:
            agents.pop(agent.value, None)

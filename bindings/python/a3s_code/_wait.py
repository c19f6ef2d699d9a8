"""Blocking waits that Ctrl-C interrupts: a wait is cut in slices, because Python delivers a
signal only between them."""

from __future__ import annotations

import threading

from . import _ffi
from ._errors import CodeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    T = TypeVar("T")

SLICE_MS = 50


def call(handle: _ffi.Handle, method: bytes, params: bytes) -> bytes:
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

"""The threads and loops that run what this program supplies."""

from __future__ import annotations

import sys
import threading
from _queue import Empty, SimpleQueue  # that of queue may be replaced, by gevent for one
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    import asyncio


class Workers:
    """Daemon threads that run plain functions: one for each that runs, idle ones are used again.
    There is no limit, because a function may wait for what another one must answer first, and
    because functions that hang must not hold up all others. Daemons, because they must not keep the
    interpreter from ending either."""

    def __init__(self, patience: float = 30) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()  # of C: a thread wakes in one step
        self._threads = 0
        self._idle = 0  # threads that wait, less the jobs that wait for them

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job soon.

        Raises:
            RuntimeError: there is no thread, and the system gives none.
        """
        with self._lock:
            self._idle -= 1
            self._jobs.put(job)
            if self._idle >= 0:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._work, name="a3s-tool", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                if self._threads:  # the next that is free takes it
                    return
                self._idle += 1
                self._jobs.get_nowait()
            raise

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._next()
            if job is None:
                return
            job()
            del job  # while it waits, a thread keeps nothing of the program alive

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._jobs.get(timeout=self._patience)
        except Empty:
            pass
        with self._lock:
            try:
                return self._jobs.get_nowait()  # it came this moment
            except Empty:
                self._idle -= 1
                self._threads -= 1
                return None


workers = Workers()
_loop_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def private_loop() -> asyncio.AbstractEventLoop:
    """The loop of async functions that were registered outside of any."""
    import asyncio

    global _loop
    with _loop_lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="a3s-loop", daemon=True).start()
        return _loop


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of this thread, or None."""
    if "asyncio" not in sys.modules:  # then none can run
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def is_async(fn: object) -> bool:
    """Whether calling it gives something that a loop must run."""
    import inspect

    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (fn, getattr(fn, "__call__", None)))

"""The threads that run functions of the program."""

from __future__ import annotations

import threading
import weakref

import pytest

from a3s_code._workers import Workers
from conftest import until


def test_jobs_run_beside_each_other_however_many() -> None:
    workers, met, done = Workers(), threading.Barrier(100), threading.Semaphore(0)

    def meet() -> None:  # each waits for all others
        met.wait(20)
        done.release()

    for _ in range(100):
        workers.submit(meet)
    assert all(done.acquire(timeout=20) for _ in range(100))


def test_a_system_without_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, free, done = Workers(), threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        free.wait(10)

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            workers.submit(done.release)
    assert (workers._threads, workers._idle, workers._jobs.empty()) == (0, 0, True)
    workers.submit(hold)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        workers.submit(done.release)  # runs when the one thread is free
    assert workers._threads == 1 and not done.acquire(blocking=False)
    free.set()
    assert done.acquire(timeout=10)
    until(lambda: workers._idle == 1)


def test_an_idle_thread_is_used_again() -> None:
    workers, names = Workers(), []
    for number in range(20):
        workers.submit(lambda: names.append(threading.get_ident()))
        until(lambda: len(names) == number + 1 and workers._idle == 1)
    assert len(set(names)) == 1 and workers._threads == 1


def test_threads_without_work_go() -> None:
    workers, done = Workers(patience=0.01), threading.Semaphore(0)
    for _ in range(50):
        for _ in range(4):
            workers.submit(done.release)
        assert all(done.acquire(timeout=10) for _ in range(4))
    until(lambda: workers._threads == 0)
    assert workers._idle == 0 and workers._jobs.empty()
    workers.submit(done.release)
    assert done.acquire(timeout=10)


def test_a_thread_that_waits_keeps_nothing_alive() -> None:
    class Thing:
        def work(self) -> None:
            done.release()

    workers, done, thing = Workers(), threading.Semaphore(0), Thing()
    gone = weakref.ref(thing)
    workers.submit(thing.work)
    del thing
    assert done.acquire(timeout=10)
    until(lambda: gone() is None)
    assert workers._threads == 1

"""Streams against the stand-in: batches, buffers, ends, threads, loops."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from a3s_code import Agent, EventType, Session, SessionBusy, _ffi


@pytest.fixture
def session(fake: str) -> Session:
    return Agent.create("x").session(".")


def test_all_events_in_order(session: Session) -> None:
    events = list(session.stream("events 1000"))
    assert [e.sequence for e in events] == list(range(1001))
    assert {e.type for e in events[:-1]} == {EventType.TEXT_DELTA} and events[-1].type == EventType.AGENT_END


def test_all_events_in_order_async(session: Session) -> None:
    async def main() -> list[Any]:
        return [e.sequence async for e in session.stream("events 1000")]

    assert asyncio.run(main()) == list(range(1001))


@pytest.mark.parametrize("size", [1, 130_000, 131_072, 1_000_000])
def test_the_buffer_grows_with_an_event(session: Session, size: int) -> None:
    assert [len(e.text or "") for e in session.stream(f"big {size}")] == [size, 4]


def test_next_and_anext(session: Session) -> None:
    stream = session.stream("events 2")
    assert [next(stream).sequence, next(stream).sequence, next(stream).sequence, next(stream, None)] == [0, 1, 2, None]
    assert stream.closed

    async def main() -> None:
        stream = session.stream("events 1")
        assert [(await stream.__anext__()).sequence, (await stream.__anext__()).sequence] == [0, 1]
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()

    asyncio.run(main())


def test_break_closes_the_stream(session: Session) -> None:
    stream = session.stream("events 10")
    for event in stream:
        break
    assert event.sequence == 0 and stream.closed and list(stream) == []

    async def main() -> None:
        stream = session.stream("events 10")
        async for _ in stream:
            break
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert stream.closed

    asyncio.run(main())


def test_streams_free_what_they_hold(session: Session) -> None:
    before = _ffi.stats()
    list(session.stream("events 3"))
    with session.stream("events 3"):
        pass
    session.stream("events 3").close()
    session.stream("events 3")
    for _ in session.stream("events 3"):
        break
    assert _ffi.stats() == before


def test_cancel_while_waiting(session: Session) -> None:
    stream = session.stream("idle")
    threading.Timer(0.05, stream.cancel).start()
    assert [e.type for e in stream] == [EventType.ERROR]


def test_cancel_while_waiting_async(session: Session) -> None:
    async def main() -> list[str]:
        stream = session.stream("idle")
        asyncio.get_running_loop().call_later(0.05, stream.cancel)
        return [e.type async for e in stream]

    assert asyncio.run(main()) == [EventType.ERROR]


def test_close_from_another_thread_ends_the_wait(session: Session) -> None:
    stream = session.stream("idle")
    threading.Timer(0.05, stream.close).start()
    assert list(stream) == []

    async def main() -> list[Any]:
        stream = session.stream("idle")
        threading.Timer(0.05, stream.close).start()
        return [e async for e in stream]

    assert asyncio.run(main()) == []


def test_a_stream_has_one_reader(session: Session) -> None:
    stream = session.stream("idle")

    async def main() -> None:
        first = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0)
        with pytest.raises(SessionBusy, match="another task reads this stream"):
            await stream.__anext__()
        stream.cancel()
        assert (await first).type == EventType.ERROR

    asyncio.run(main())


def test_a_cancelled_task_leaves_no_reader_behind(session: Session) -> None:
    async def main() -> None:
        stream = session.stream("idle")
        task = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not asyncio.get_running_loop().remove_reader(stream._fd)
        stream.close()

    asyncio.run(main())


def test_results(session: Session) -> None:
    result = session.send("events 1")
    assert (str(result), result.text, result.tool_calls_count, result.total_tokens) == ("done", "done", 4, 3)
    assert session.run({"prompt": "events 1"}).text == session.send_request({"prompt": "events 1"}).text == "done"


def test_admission_fails_at_once(session: Session) -> None:
    with pytest.raises(SessionBusy, match="already has an active operation"):
        session.stream("fail")


def test_is_closed_is_a_value_and_a_call(fake: str) -> None:
    with Agent.create("x") as agent:
        session = agent.session(".")
        assert not session.is_closed and not session.is_closed() and not agent.is_closed
    assert session.is_closed and agent.is_closed() and repr(agent.is_closed) == "True"
    agent.close()
    session.close()

"""asyncio on the real library: no helper threads, cancellation, many tasks at once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from a3s_code import Agent, CodeError, EventStream, EventType, MemorySessionStore, Session, SessionOptions
from conftest import SLOW, Place, until


def test_async_twins(place: Place) -> None:
    place.agent("say one\nend\nsay two\nend\nsay three\nend").close()

    async def main() -> None:
        async with await Agent.create_async(str(place.acl)) as agent:
            options = SessionOptions()
            options.session_store = MemorySessionStore()
            async with await agent.session_async(str(place.workspace), options) as session:
                assert [e.type async for e in session.stream("x")][-1] == EventType.AGENT_END
                assert (await session.send_async("x")).text == "two"
                run = (await session.runs_async())[0]
                assert await session.run_snapshot_async(run["id"]) == run
                assert await session.run_events_async(run["id"]) == session.run_events(run["id"])
                assert await session.run_event_page_async(run["id"]) == session.run_event_page(run["id"])
                assert (await session.tool_async("ls")).ok
                assert not await session.cancel_async()
                await session.save_async()
                session_id = session.session_id
            assert session.is_closed
            async with await agent.resume_session_async(session_id, options) as again:
                assert len(again.history()) == 4
        assert agent.is_closed

    asyncio.run(main())


def test_async_calls_side_by_side(place: Place) -> None:
    agent = place.agent("say x\nend")
    session = agent.session(str(place.workspace))

    async def main() -> None:
        before = set(threading.enumerate())  # others may still wait for work
        met = "touch here-{}; until [ $(ls here-* | wc -l) = 5 ]; do sleep 0.02; done; echo done"  # only if all are there at once
        results = await asyncio.gather(*(session.tool_async("bash", {"command": met.format(i), "timeout": 30_000}) for i in range(5)))
        assert [r.output.strip() for r in results] == ["done"] * 5
        assert set(threading.enumerate()) <= before

    asyncio.run(main())


def test_a_cancelled_task_cancels_what_it_awaits(place: Place) -> None:
    session = place.session(SLOW)

    async def main() -> None:
        for awaitable in (session.send_async("x"), session.tool_async("bash", {"command": "sleep 60"})):
            task = asyncio.ensure_future(awaitable)
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        until = time.monotonic() + 5
        while (session.current_run() or session.active_tools()) and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert session.runs()[0]["status"] == "cancelled"
        assert (await session.send_async("x")).text == "after"

    asyncio.run(main())


def test_a_loop_that_ends_in_the_middle_leaves_nothing(place: Place) -> None:
    session = place.session(SLOW)

    async def main() -> None:
        asyncio.ensure_future(session.tool_async("bash", {"command": "sleep 60"}))
        await asyncio.sleep(0.1)

    began = time.monotonic()
    asyncio.run(main())
    assert session.active_tools() == [] and time.monotonic() - began < 2


def test_a_hundred_streams_at_once(place: Place) -> None:
    agent = place.agent("say " + "word " * 200)
    before = threading.active_count()

    async def main() -> None:
        sessions = [agent.session(str(place.workspace)) for _ in range(100)]
        streams = [session.stream(f"prompt {n}") for n, session in enumerate(sessions)]

        async def follow(stream: EventStream) -> tuple[list[int | None], str | None]:
            events = [e async for e in stream]
            return [e.sequence for e in events], events[-1].text

        told = await asyncio.gather(*(follow(stream) for stream in streams))
        assert all(numbers == list(range(len(numbers))) and text and text.count("word") == 200 for numbers, text in told)
        assert threading.active_count() == before
        await asyncio.gather(*(session.close_async() for session in sessions))

    asyncio.run(main())


@pytest.mark.parametrize("way", ["async for", "async with"])
def test_a_cancelled_task_cancels_the_run_of_its_stream(place: Place, way: str) -> None:
    session = place.session(SLOW)
    begun = asyncio.Event()

    async def follow() -> None:
        if way == "async for":
            async for event in session.stream("x"):
                if event.type == EventType.TEXT_DELTA:
                    begun.set()
            return
        async with session.stream("x") as stream:
            await stream.__anext__()
            begun.set()
            await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.ensure_future(follow())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await settled(session))["status"] == "cancelled"
        assert (await session.send_async("x")).text == "after"

    asyncio.run(main())


def test_a_wait_for_one_event_that_runs_out_leaves_the_run_alone(place: Place) -> None:
    session = place.session(SLOW)

    async def main() -> None:
        stream = session.stream("x")
        while (await asyncio.wait_for(stream.__anext__(), 10)).type != EventType.TEXT_DELTA:
            pass
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.__anext__(), 0.02)
        assert session.current_run() is not None
        session.cancel()
        rest = [event async for event in stream]
        assert rest[-1].payload["code"] == "CANCELLED" and rest[0].sequence == 3

    asyncio.run(main())


def test_a_cancelled_opening_leaves_nothing(place: Place) -> None:
    agent, asked, free = place.agent("say x"), threading.Event(), threading.Event()

    class Slow:
        def load(self, id: str, start: int, limit: int) -> None:
            asked.set()
            free.wait(20)

        def append(self, id: str, generation: int, start: int, facts: list[str]) -> None: ...
        def save(self, id: str, generation: int, snapshot: str) -> None: ...
        def delete(self, id: str) -> None: ...
        def list(self) -> list[str]: return []

    options = SessionOptions()
    options.session_store, options.session_id = agent.register_session_store("slow", Slow()), "s"

    async def main() -> None:
        task = asyncio.ensure_future(agent.session_async(str(place.workspace), options))
        while not asked.is_set():
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        free.set()

    asyncio.run(main())
    until(lambda: not gc.collect() and not agent.list_sessions())


def test_closing_by_hand(place: Place) -> None:
    agent = place.agent("say x\nend\nsay y\nend\nsay z")
    with contextlib.closing(agent.session(str(place.workspace))) as session, contextlib.closing(session.stream("x")) as stream:
        assert [e.type for e in stream][-1] == EventType.AGENT_END

    async def main() -> None:
        async with contextlib.aclosing(agent.session(str(place.workspace)).stream("x")) as stream:
            assert [e.type async for e in stream][-1] == EventType.AGENT_END

    asyncio.run(main())
    assert session.is_closed and stream.closed


async def settled(session: Session) -> dict[str, Any]:
    """The latest run, when it has ended."""
    while session.current_run() is not None:
        await asyncio.sleep(0.005)
    return session.runs()[-1]


def test_errors_reach_the_awaiting_task(place: Place) -> None:
    session = place.session("fail denied no luck")

    async def main() -> None:
        with pytest.raises(CodeError, match="no luck"):
            await session.send_async("x")
        with pytest.raises(CodeError) as err:
            await session.run_event_page_async("x", limit=0)
        assert err.value.code == "INVALID_REQUEST"

    asyncio.run(main())


def test_sessions_of_several_agents_at_once(tmp_path: Path, library: None) -> None:
    (tmp_path / "turns.txt").write_text("say hello there\nend\n")
    acl = tmp_path / "agent.acl"
    acl.write_text('default_model = "script/main"\nproviders "script" { models "main" { script = "turns.txt" } }\n')

    async def one(agent: Agent) -> str:
        async with await agent.session_async(str(tmp_path)) as session:
            return "".join([e.text async for e in session.stream("x") if e.type == EventType.TEXT_DELTA and e.text])

    async def main() -> list[str]:
        async with await Agent.create_async(str(acl)) as a, await Agent.create_async(str(acl)) as b:
            return await asyncio.gather(*(one(agent) for agent in (a, b) * 10))

    assert asyncio.run(main()) == ["hello there"] * 20


def test_without_a_loop_of_asyncio_it_is_said(place: Place) -> None:
    session = place.session("say one\nend\nsay two\nend")
    for waits in (lambda: session.send_async("x").send(None), lambda: Agent.create_async(str(place.acl))):
        with pytest.raises(CodeError, match="no event loop of asyncio runs here") as refused:
            waits()
        assert refused.value.code == "UNSUPPORTED_OPERATION"
    with session.stream("x") as stream, pytest.raises(CodeError, match="no event loop of asyncio runs here"):
        while True:  # what is there already comes without a loop
            with pytest.raises(StopIteration):
                stream.__anext__().send(None)

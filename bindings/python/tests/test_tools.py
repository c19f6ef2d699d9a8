"""Tools that this program implements."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from dataclasses import dataclass
from typing import Any, Literal, Optional

import pytest

from a3s_code import AlreadyExists, CodeError, EventType, PermissionPolicy, SessionClosed, ToolContext, ToolResult
from conftest import Place

ALL = PermissionPolicy(default_decision="allow")


def calls(*steps: str) -> str:
    """A script that makes these calls in turns of their own, and ends."""
    return "".join(f"call {step}\nend\n" for step in steps) + "say done\nend\n"


def outcome(session: Any, prompt: str = "go") -> list[tuple[str, int]]:
    """Output and exit code of every call of one run."""
    return [(e.tool_output, e.exit_code) for e in session.stream(prompt) if e.type == EventType.TOOL_END]


@dataclass
class Point:
    x: int
    y: int = 0


def test_a_function_is_a_tool(place: Place) -> None:
    session = place.session(calls('add {"a": 2}', 'add {"a": 2, "b": 3}', 'add {"a": "two"}', 'far {"p": {"x": 3}, "unit": "m"}'), permission_policy=ALL)
    threads = set()

    @session.register_tool
    def add(a: int, b: int = 40) -> int:
        """Adds two numbers.

        Args:
            a: the first.
        """
        threads.add(threading.current_thread().name)
        return a + b

    @session.register_tool(name="far", read_only=True)
    def distance(p: Point, unit: Literal["m", "km"], note: Optional[str] = None) -> dict[str, Any]:
        """Measures."""
        return {"distance": p.x + p.y, "unit": unit, "note": note}

    assert add(1, 2) == 3
    threads.clear()
    spec = next(t for t in session.tool_definitions() if t["name"] == "add")
    assert spec["description"] == "Adds two numbers." and spec["parameters"]["properties"]["a"] == {"type": "integer", "description": "the first."}
    results = outcome(session)
    assert results[:2] == [("42", 0), ("5", 0)]
    assert results[-1] == ('{"distance": 3, "unit": "m", "note": null}', 0)
    assert all(code != 0 for _, code in results[2:-1])
    assert threads == {"a3s-tool"}


RETURNS = {
    "text": ("plain", ("plain", 0)),
    "nothing": (None, ("", 0)),
    "number": (1.5, ("1.5", 0)),
    "list": ([1, "zwölf"], ('[1, "zwölf"]', 0)),
    "dataclass": (Point(1), ('{"x": 1, "y": 0}', 0)),
    "set": ({1}, ("[1]", 0)),
    "result": (ToolResult(output="bad", exit_code=3, metadata={"a": 1}), ("bad", 3)),
    "surrogate": ("\ud800", None),
}


@pytest.mark.parametrize("name", RETURNS)
def test_what_a_tool_returns(place: Place, name: str) -> None:
    value, wanted = RETURNS[name]
    session = place.session("say x\nend")

    @session.register_tool(name="give")
    def give() -> Any:
        """Gives."""
        return value

    result = session.tool("give")
    if wanted is None:
        assert not result.ok
    else:
        assert (result.output, result.exit_code) == wanted
    if name == "result":
        assert result.metadata is not None and result.metadata["a"] == 1


def test_an_exception_is_a_failed_result(place: Place) -> None:
    session = place.session(calls("fail {}") + "", permission_policy=ALL)

    @session.register_tool(name="fail")
    def broken() -> None:
        """Fails."""
        raise ValueError("no such luck")

    (output, code), = outcome(session)
    assert code != 0 and "ValueError" in output and "no such luck" in output


def test_async_tools_run_in_the_loop_that_registered_them(place: Place) -> None:
    session = place.session(calls("where {}", "where {}"), permission_policy=ALL)

    async def main() -> list[str]:
        seen = []

        @session.register_tool
        async def where() -> str:
            """Says where."""
            await asyncio.sleep(0)
            seen.append(threading.current_thread() is threading.main_thread())
            return "here"

        assert [e.tool_output async for e in session.stream("go") if e.type == EventType.TOOL_END] == ["here", "here"]
        assert seen == [True, True]
        return []

    asyncio.run(main())


def test_async_tools_without_a_loop_have_their_own(place: Place) -> None:
    session = place.session(calls("where {}"), permission_policy=ALL)

    @session.register_tool
    async def where() -> str:
        """Says where."""
        return threading.current_thread().name

    assert outcome(session) == [("a3s-loop", 0)]


def test_a_tool_may_use_its_session(place: Place) -> None:
    (place.workspace / "a.txt").write_text("hello\n")
    session = place.session(calls("nested {}"), permission_policy=ALL)

    @session.register_tool
    def nested() -> str:
        """Reads a file and asks another tool."""
        return session.read_file("a.txt") + session.tool("inner").output

    @session.register_tool
    async def inner() -> str:
        """Lists."""
        return (await session.tool_async("ls")).output.splitlines()[0]

    (output, code), = outcome(session)
    assert code == 0 and output.startswith("     1\thello\nDirectory")


def test_tools_run_side_by_side(place: Place) -> None:
    session = place.session("say x\nend")
    barrier = threading.Barrier(8, timeout=10)

    @session.register_tool(read_only=True)
    def meet() -> str:
        """Waits for the others."""
        barrier.wait()
        return "met"

    async def main() -> list[Any]:
        return await asyncio.gather(*(session.tool_async("meet") for _ in range(8)))

    assert [r.output for r in asyncio.run(main())] == ["met"] * 8


def test_progress_is_told_while_a_tool_runs(place: Place) -> None:
    session = place.session(calls("work {}"), permission_policy=ALL)
    told = threading.Event()

    @session.register_tool
    def work(context: ToolContext) -> str:
        """Works."""
        assert (context.tool_name, context.session_id) == ("work", session.session_id)
        assert context.call_id and context.deadline is not None and 0 < (context.remaining() or 0) <= 600
        context.emit("half way\n")
        assert told.wait(10)
        return "finished"

    seen = []
    for event in session.stream("go"):
        if event.type == EventType.TOOL_OUTPUT_DELTA:
            seen.append((event.tool_name, event.text))
            told.set()
    assert seen == [("work", "half way\n")]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_cancel_reaches_a_tool(place: Place, kind: str) -> None:
    session = place.session(calls("wait {}"), permission_policy=ALL)
    started, stopped = threading.Event(), threading.Event()

    if kind == "plain":
        @session.register_tool(name="wait")
        def plain(context: ToolContext) -> None:
            """Waits."""
            started.set()
            if context.wait_cancelled(10) and context.cancelled and context.reason:
                stopped.set()
            context.emit("too late")
    else:
        @session.register_tool(name="wait")
        async def coroutine() -> None:
            """Waits."""
            started.set()
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                stopped.set()
                raise

    stream = session.stream("go")
    assert started.wait(10)
    assert session.cancel()
    assert list(stream)[-1].type == EventType.ERROR and stopped.wait(10)
    assert session.runs()[0]["status"] == "cancelled"


def test_a_tool_that_takes_too_long(place: Place) -> None:
    session = place.session(calls("wait {}"), permission_policy=ALL)
    stopped, over = threading.Event(), threading.Event()

    @session.register_tool(timeout_ms=100)
    def wait(context: ToolContext) -> None:
        """Waits."""
        if context.wait_cancelled(10):
            stopped.set()
        over.wait(10)

    began = time.monotonic()
    (_, code), = outcome(session)
    assert code != 0 and time.monotonic() - began < 5 and stopped.wait(5)
    over.set()


def test_closing_the_session_stops_its_tools(place: Place) -> None:
    session = place.session(calls("wait {}"), permission_policy=ALL)
    started, stopped = threading.Event(), threading.Event()

    @session.register_tool
    def wait(context: ToolContext) -> None:
        """Waits."""
        started.set()
        if context.wait_cancelled(10):
            stopped.set()

    session.stream("go")
    assert started.wait(10)
    session.close()
    assert stopped.wait(10)


def test_names_are_taken_once(place: Place) -> None:
    session = place.session("say x\nend")

    def one() -> str:
        """One."""
        return "1"

    session.register_tool(one)
    with pytest.raises(AlreadyExists):
        session.register_tool(one)
    assert "one" in session.tool_names()
    assert session.unregister_tool("one") and not session.unregister_tool("one")
    assert "one" not in session.tool_names()
    session.register_tool(one)
    assert session.tool("one").output == "1"
    with pytest.raises(CodeError):
        session.register_tool(one, name="read")


def test_a_policy_decides_over_own_tools_too(place: Place) -> None:
    session = place.session(calls("touch {}"), permission_policy=PermissionPolicy(deny=["touch"], default_decision="allow"))
    touched = []

    @session.register_tool
    def touch() -> None:
        """Touches."""
        touched.append(1)

    list(session.stream("go"))
    assert touched == []


def test_tools_of_an_agent_serve_all_its_sessions(place: Place) -> None:
    agent = place.agent("say x\nend")

    @agent.register_tool
    def who(context: ToolContext) -> str:
        """Says who asks."""
        return context.session_id

    first, second = agent.session(str(place.workspace)), agent.session(str(place.workspace))
    assert (first.tool("who").output, second.tool("who").output) == (first.session_id, second.session_id)
    assert agent.unregister_tool("who") and "who" not in first.tool_names()


def test_registering_needs_a_function_and_an_open_session(place: Place) -> None:
    session = place.session("say x\nend")
    with pytest.raises(TypeError):
        session.register_tool("text")  # type: ignore[call-overload]
    session.close()
    with pytest.raises(SessionClosed):
        session.register_tool(lambda: None, name="nothing")


def test_a_tool_keeps_nothing_alive(place: Place) -> None:
    agent = place.agent("say x\nend")
    place.open.clear()
    session = agent.session(str(place.workspace))

    @session.register_tool
    def mine() -> str:
        """Names the session."""
        return session.session_id

    desk = next(t for t in threading.enumerate() if t.name == "a3s-desk")
    del agent, session, mine
    gc.collect()
    desk.join(5)
    assert not desk.is_alive()


def test_one_dispatcher_an_agent(place: Place) -> None:
    agent = place.agent("say x\nend")
    for _ in range(2):
        session = agent.session(str(place.workspace))
        session.register_tool(lambda: "x", name="x", description="Gives x.")
        assert session.tool("x").output == "x"
    desks = [t for t in threading.enumerate() if t.name == "a3s-desk"]
    assert len(desks) == 1 and desks[0].daemon
    agent.close()
    desks[0].join(5)
    assert not desks[0].is_alive()


def test_where_threads_are_replaced_it_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    session = place.session("say x")
    with monkeypatch.context() as patch:
        patch.setattr("_thread.start_new_thread", lambda fn, args: 0)  # as gevent does it
        with pytest.raises(CodeError, match="threads of this process are replaced") as refused:
            session.register_tool(lambda: "x", name="x")
    assert refused.value.code == "UNSUPPORTED_OPERATION"
    session.register_tool(lambda: "x", name="x", read_only=True)
    assert session.tool("x").output == "x"

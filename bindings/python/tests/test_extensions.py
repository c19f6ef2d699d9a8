"""Parts of the library that this program supplies: checkers, context, commands and log
lines. Models, stores, workspaces and transports have files of their own."""

from __future__ import annotations

import gc
import json
import time
import weakref
from typing import Any, AsyncIterator, Callable, Literal

import pytest

import a3s_code
from a3s_code import (
    Agent, AlreadyExists, Cancelled, Context, EventType, InvalidRequest, LLMError, Registration, Session,
    SessionClosed,
)
from a3s_code._extensions import KINDS
from conftest import HERE, Place, limit, opened, until


def test_the_table_is_the_librarys() -> None:
    schema = json.loads((HERE.parents[2] / "include" / "a3s.schema.json").read_text())
    theirs = {k["kind"]: {op["op"]: "chunk" in op for op in k["ops"]} for k in schema["host_kinds"]}
    assert theirs.pop("tool") == {"call": True}
    ours = {kind: {key: op.piece is not None for key, op in table.ops.items() if " blob" not in key} for kind, table in KINDS.items()}
    assert ours.items() <= theirs.items()  # a kind that is new there is reached by register_extension
    for k in schema["host_kinds"]:
        if k["kind"] not in {*KINDS, "tool"}:
            continue
        method = {
            "permission": "register_permission_checker", "context": "register_context_provider", "store": "register_session_store",
        }.get(k["kind"], f"register_{k['kind']}")
        assert (hasattr(Agent, method), hasattr(Session, method)) == (k["agent"], k["session"])


# --- registering ---

def test_the_binding_does_not_keep_a_session_alive(host: Place) -> None:
    agent = host.agent("")
    agent.register_model("mine", lambda request: "hello")
    session = opened(host, agent)
    registration = session.register_command("count", "Counts.", lambda args, ctx: str(len(session.history())))
    assert session.send("/count").text == "0"
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    registration.close()


def test_agent_and_session_may_both_have_one_without_a_name(host: Place) -> None:
    agent = host.agent("")
    agent.register_model("mine", lambda request: "hello")
    first, second = opened(host, agent), opened(host, agent)
    names = [o.register_log(lambda line: None).name for o in (agent, first, second)]
    assert names == ["log", "session-log", "session-log"]
    assert [o.register_permission_checker(lambda q: "allow").name for o in (agent, first)] == ["checker", "session-checker"]


def test_a_request_never_reaches_the_handler_of_another_session(host: Place) -> None:
    agent = host.agent("")
    agent.register_model("mine", lambda request: "hello")
    one, other = opened(host, agent), opened(host, agent)
    other.register_command("count", "Counts.", lambda args, ctx: "1")
    assert agent._desk._find("command", other.session_id, "count")
    with pytest.raises(LookupError):  # as if it had been taken back while its request was on the way
        agent._desk._find("command", one.session_id, "count")


def test_registrations(host: Place) -> None:
    agent = host.agent("")
    registration = agent.register_model("mine", lambda request: "one")
    assert isinstance(registration, Registration) and repr(registration) == "<Registration model 'mine'>"
    with pytest.raises(AlreadyExists):
        agent.register_model("mine", lambda request: "two")
    session = opened(host, agent)
    assert session.send("hi").text == "one"
    registration.close()
    registration.close()
    assert repr(registration).endswith("closed>")
    with pytest.raises(LLMError, match="took its model"):
        session.send("hi")
    with agent.register_model("mine", lambda request: "three"):
        assert opened(host, agent).send("hi").text == "three"
    with pytest.raises(InvalidRequest):
        agent.register_model("a b", lambda request: "x")
    session.close()
    with pytest.raises(SessionClosed):
        session.register_log(print)
    agent.close()
    with pytest.raises(SessionClosed):
        agent.register_model("late", lambda request: "x")


@pytest.mark.parametrize("register", [
    lambda agent: agent.register_model("x", 5),
    lambda agent: agent.register_model("x", Place),
    lambda agent: agent.register_model(5, print),
    lambda agent: agent.register_session_store("x", Gate()),
    lambda agent: agent.register_session_store("x", print),
    lambda agent: agent.register_workspace("x", print),
    lambda agent: agent.register_permission_checker(None),
    lambda agent: agent.register_log("x"),
    lambda agent: agent.register_transport("x", object()),
    lambda agent: agent.register_command("x", 5, print),
])
def test_what_cannot_be_registered(host: Place, register: Callable[[Agent], Any]) -> None:
    with pytest.raises((TypeError, ValueError, InvalidRequest)):
        register(host.agent(""))


def test_there_is_no_context_elsewhere(host: Place) -> None:
    with pytest.raises(LookupError):
        Context.current()


def test_the_names_are_there() -> None:
    for name in a3s_code.__all__:
        assert getattr(a3s_code, name) is not None
    with pytest.raises(AttributeError):
        a3s_code.Nonsense  # type: ignore[attr-defined]


def raises(err: BaseException) -> Callable[..., Any]:
    def fail(*args: Any) -> Any:
        raise err
    return fail


# --- permissions ---

WRITE = 'call write {"file_path": "x.txt", "content": "x"}\nend\nsay done\nend\n'


class Gate:
    def __init__(self, visible: Any = True) -> None:
        self.visible = visible

    def check(self, request: Any) -> Literal["allow"]:
        return "allow"

    def expose(self, request: Any) -> Any:
        return self.visible


async def allow_async(request: Any) -> str:
    return "allow"


CHECKERS: dict[str, tuple[Any, bool, str]] = {
    "allows": (lambda request: "allow", True, ""),
    "allows, async": (allow_async, True, ""),
    "an object": (Gate(), True, ""),
    "asks, nobody there": (lambda request: "ask", False, "nobody can be asked"),
    "denies": (lambda request: {"decision": "deny", "reason": "not today"}, False, "not today"),
    "raises": (raises(ValueError("boom")), False, "ValueError: boom"),
    "garbage": (lambda request: "maybe", False, '"maybe" is none of'),
    "true": (lambda request: True, False, "must be str, not bool"),
    "nothing": (lambda request: None, False, "must be str"),
    "hangs": (lambda request: Context.current().wait_cancelled(5), False, "within 100ms"),
}


@pytest.mark.parametrize("name", CHECKERS)
@pytest.mark.parametrize("on", ["agent", "session"])
def test_a_permission_checker(place: Place, name: str, on: str) -> None:
    checker, ran, words = CHECKERS[name]
    agent = place.agent(WRITE)
    if on == "agent":
        agent.register_permission_checker(checker, timeout_ms=limit(name))
    session = opened(place, agent)
    if on == "session":
        session.register_permission_checker(checker, timeout_ms=limit(name))
    events = list(session.stream("go"))
    assert (place.workspace / "x.txt").exists() == ran
    if not ran:
        denied = next(e for e in events if e.type == EventType.PERMISSION_DENIED)
        assert words in denied.payload["reason"]


def test_what_a_checker_is_asked(place: Place) -> None:
    asked: list[Any] = []

    def check(request: Any) -> Literal["allow"]:
        asked.append((request, Context.current().name, Context.current().op))
        return "allow"

    session = opened(place, place.agent(WRITE))
    with session.register_permission_checker(check, name="gate"):
        session.send("go")
    (request, name, op), = asked
    assert (request["tool"], request["args"], name, op) == ("write", {"file_path": "x.txt", "content": "x"}, "gate", "check")
    assert request["effects"]["write"] is True and request["session_id"] == session.session_id


@pytest.mark.parametrize("visible, shown", [(True, True), (False, False), (None, False), ("yes", False)])
def test_hidden_tools(host: Place, visible: Any, shown: bool) -> None:
    tools: list[str] = []

    def model(request: Any) -> str:
        tools.extend(t["name"] for t in request["tools"])
        return "done"

    agent = host.agent("")
    agent.register_model("mine", model)
    agent.register_permission_checker(Gate(visible))
    opened(host, agent).send("go")
    assert ("write" in tools) == shown


# --- context ---

async def items_async(request: Any) -> AsyncIterator[Any]:
    yield {"id": "1", "content": "it is the cache"}


CONTEXTS: dict[str, Any] = {
    "a list": lambda request: [{"id": "1", "content": "it is the cache", "priority": 0.5}],
    "an object": lambda request: {"items": [{"id": "1", "content": "it is the cache"}]},
    "a generator": lambda request: ({"id": str(n), "content": c} for n, c in enumerate(["it is the cache"])),
    "an async generator": items_async,
}
NO_CONTEXTS: dict[str, Any] = {
    "nothing": lambda request: None,
    "raises": raises(ValueError("boom")),
    "garbage": lambda request: ["text"],
    "text": lambda request: "text",
    "hangs": lambda request: Context.current().wait_cancelled(5),
}


@pytest.mark.parametrize("name", [*CONTEXTS, *NO_CONTEXTS])
def test_a_context_provider(host: Place, name: str) -> None:
    seen: list[str] = []

    def model(request: Any) -> str:
        seen.append(request["system"])
        return "done"

    agent = host.agent("")
    agent.register_model("mine", model)
    agent.register_context_provider("wiki", {**CONTEXTS, **NO_CONTEXTS}[name], timeout_ms=limit(name))
    assert opened(host, agent).send("why is it slow?").text == "done"
    assert ("it is the cache" in seen[0]) == (name in CONTEXTS)


# --- commands ---

async def command_async(args: str, ctx: Any) -> str:
    return f"{args} in {ctx['workspace']}"


COMMANDS: dict[str, tuple[Any, str]] = {
    "plain": (lambda args, ctx: f"{args} in {ctx['workspace']}", "a b in {workspace}"),
    "async": (command_async, "a b in {workspace}"),
    "raises": (lambda args, ctx: 1 / 0, "The command /x failed: ZeroDivisionError: division by zero"),
    "garbage": (lambda args, ctx: 7, "The command /x failed: TypeError: the answer must be str, not int"),
    "hangs": (lambda args, ctx: Context.current().wait_cancelled(5), 'The command /x failed: the host did not answer command "x" within 100ms'),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(place: Place, name: str) -> None:
    handler, words = COMMANDS[name]
    session = place.session("say hello\nend")
    with session.register_command("x", "does it", handler, "/x ARGS", timeout_ms=limit(name)):
        assert "x" in [c["name"] for c in session.list_commands()]
        assert "does it" in session.send("/help").text and "/x ARGS" in session.send("/help").text
        assert session.send("/x a b").text == words.format(workspace=session.workspace)
    assert "There is no command /x" in session.send("/x").text
    with pytest.raises(AlreadyExists):
        session.register_command("help", "mine", handler)


def test_a_command_reads_the_history_and_is_cancelled(place: Place) -> None:
    session = place.session("say hello\nend")
    session.register_command("count", "Counts.", lambda args, ctx: f"{len(session.history())} {ctx['history_len']}")
    session.send("hi")
    assert session.send("/count").text == "2 2"
    reasons: list[str] = []

    def stop(args: str, ctx: Any) -> str:
        session.cancel()
        Context.current().wait_cancelled(10)
        reasons.append(Context.current().reason)
        return "late"

    session.register_command("stop", "Stops.", stop)
    with pytest.raises(Cancelled):
        session.send("/stop")
    until(lambda: reasons == ["cancelled"])


# --- log lines ---

@pytest.mark.parametrize("way", ["plain", "async"])
def test_log_lines(place: Place, way: str) -> None:
    lines: list[Any] = []

    async def take(line: Any) -> None:
        lines.append(line)

    session = place.session("say a\nend\nsay b\nend")
    session.register_context_provider("wiki", raises(ValueError("boom")))
    with session.register_log(lines.append if way == "plain" else take, level="warn"):
        session.send("hi")
        until(lambda: lines)
    session.send("hi")
    assert [(line["level"], line["message"]) for line in lines] == [("warn", "context provider wiki was left out: ValueError: boom")]


def test_a_log_handler_that_fails_costs_nothing(place: Place) -> None:
    session = place.session("say a\nend")
    session.register_context_provider("wiki", raises(ValueError("boom")))
    session.register_log(raises(ValueError("no paper")))
    session.register_log(lambda line: time.sleep(0.2), name="slow", timeout_ms=10)
    assert session.send("hi").text == "a"

"""Wrong values at every public function, closed objects, copies, and functions of the program that
misbehave: typed errors, no abort, nothing left."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import threading
from typing import Any, Callable, Iterator

import pytest

import a3s_code
from a3s_code import Agent, CodeError, Context, EventStream, ExtensionError, FileSessionStore, MemorySessionStore, Session, SessionOptions
from a3s_code._session import _request
from a3s_code._unbuilt import UnbuiltAgent, UnbuiltSession
from conftest import SLOW, Place, opened, until

Json = Any


class Odd:
    """A class that nothing knows."""


# What no parameter of these names takes, or takes and says no more about.
WRONG: dict[str, Any] = {
    "an object": Odd(), "bytes": b"bytes", "a float": 3.5, "not a number": float("nan"), "a list": [Odd()], "a mapping": {1: Odd()},
    "text without a form": "\ud800", "a NUL": "a\0b", "below 0": -1, "huge": 10**30, "a class": Odd, "a function": lambda *a: Odd(),
    "no text": "", "None": None, "true": True, "deep": [[[[[]]]]],
}

RIGHT: dict[str, Any] = {
    "prompt": "x", "history": None, "request": {"prompt": "x"}, "run_id": "r", "after_sequence": None, "limit": 1, "uri": "a3s://x",
    "tool_id": "t", "approved": True, "reason": None, "name": "n", "args": {}, "path": "a.txt", "offset": None, "content": "c",
    "old": "a", "new": "b", "replace_all": False, "pattern": "*", "command": "true", "session_id": "s", "session_store": MemorySessionStore(),
    "kind": "context", "fn": None, "spec": {"name": "n"}, "handlers": {}, "description": "d", "handler": lambda *a: "", "usage": None, "level": None,
    "checker": lambda q: "allow", "provider": lambda q: [], "client": lambda q: "x", "transport": lambda *a: (200, {}, b""), "read_only": False, "timeout_ms": None, "config_source": 'default_model = "offline/search"', "env": None,
}


def methods(cls: type) -> Iterator[str]:
    """The methods that programs call, but for those that are not built, and take nothing."""
    absent = {name for base in (UnbuiltAgent, UnbuiltSession) for name in vars(base)}
    for name, member in inspect.getmembers(cls, callable):
        if not name.startswith("_") and name not in absent:
            if any(p.kind is not p.VAR_KEYWORD for p in inspect.signature(member).parameters.values() if p.name != "self"):
                yield name


def attempt(fn: Callable[..., Any], given: dict[str, Any]) -> None:
    """A call, which may succeed or fail in words; what it gives is used up."""
    try:
        value = asyncio.run(awaited(fn, given)) if fn.__name__.endswith("_async") else fn(**given)
    except (CodeError, TypeError, ValueError, AttributeError) as err:
        assert not isinstance(err, AttributeError) or "is no session option" in str(err), f"{type(err).__name__}: {err}"
        assert str(err) and "ctypes" not in str(err) and "Traceback" not in str(err)
        return
    if isinstance(value, EventStream):
        list(value)
    elif hasattr(value, "close"):
        value.close()


async def awaited(fn: Callable[..., Any], given: dict[str, Any]) -> Any:
    return await fn(**given)


def wrongly(fn: Callable[..., Any], right: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments that are wrong in one place."""
    names = [p.name for p in inspect.signature(fn).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    usual = {n: right[n] for n in names if n in right}
    for name in names:
        for value in WRONG.values():
            yield {**usual, name: value}


# --- wrong values ---

# Turns for all the runs that begin by mistake.
MANY = "say x\nend\n" * 500


@pytest.mark.parametrize("name", list(methods(Session)))
def test_wrong_values_at_a_session(place: Place, name: str) -> None:
    session = place.session(MANY)
    for given in wrongly(getattr(session, name), RIGHT):
        attempt(getattr(session, name), given)
    assert session.send("still here").text == "x"


@pytest.mark.filterwarnings("ignore:.* is ignored next to options")
@pytest.mark.parametrize("name", list(methods(Agent)))
def test_wrong_values_at_an_agent(place: Place, name: str) -> None:
    agent = place.agent(MANY)
    right = {**RIGHT, "workspace": str(place.workspace), "options": SessionOptions(), "store": object()}
    for given in wrongly(getattr(agent, name), right):
        attempt(getattr(agent, name), given)
    assert not agent.is_closed and opened(place, agent).send("still here").text == "x"


@pytest.mark.parametrize("name", SessionOptions.__slots__)
def test_wrong_values_of_an_option(place: Place, name: str) -> None:
    agent = place.agent("say x")

    def tried(value: Any) -> Session:
        return opened(place, agent, **{name: value})

    for value in WRONG.values():
        attempt(tried, {"value": value})


@pytest.mark.parametrize("name", [n for n in a3s_code.__all__ if inspect.isroutine(getattr(a3s_code, n))])
def test_wrong_values_at_a_function(name: str) -> None:
    for given in wrongly(getattr(a3s_code, name), {}):
        attempt(getattr(a3s_code, name), given)


@pytest.mark.parametrize("name", ["cancel"])
def test_wrong_values_at_a_stream(place: Place, name: str) -> None:
    stream = place.session("say x").stream("x")
    for given in wrongly(getattr(stream, name), {}):
        attempt(getattr(stream, name), given)
    list(stream)


# --- what is closed, and other threads ---

READABLE = {
    "active_tools", "cancel_confirmations", "close", "close_async", "current_run", "get_artifact", "history", "list_commands",
    "pending_confirmations", "run_event_page", "run_event_page_async", "run_events", "run_events_async", "run_snapshot",
    "run_snapshot_async", "runs", "runs_async", "tool_definitions", "tool_names", "trace_events", "unregister_extension", "unregister_tool",
}


@pytest.mark.parametrize("name", [n for n, m in inspect.getmembers(Session, callable) if not n.startswith("_") and n not in vars(UnbuiltSession)])
def test_a_closed_session(place: Place, name: str) -> None:
    session = place.session("say x")
    session.close()
    session.close()
    fn = getattr(session, name)
    given = {p.name: RIGHT[p.name] for p in inspect.signature(fn).parameters.values() if p.name in RIGHT and p.kind is not p.VAR_KEYWORD}
    if name.startswith("register_tool"):
        given["fn"] = len_of
    codes: list[str] = []

    def call() -> None:
        try:
            asyncio.run(awaited(fn, given)) if name.endswith("_async") else fn(**given)
        except CodeError as err:
            codes.append(err.code)

    call()
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert codes == ([] if name in READABLE or name in ("cancel", "cancel_async", "cancel_run", "confirm_tool_use", "save", "save_async") and not codes
                     else ["SESSION_CLOSED"] * 2), codes


def len_of(text: str) -> int:
    """Says how long a text is."""
    return len(text)


def test_everything_may_be_closed_twice_and_from_another_thread(place: Place) -> None:
    agent = place.agent("say x")
    session = opened(place, agent)
    registration = session.register_context_provider("n", lambda q: [])
    stream = session.stream("x")
    for closing in (stream, registration, session, agent):
        closing.close()
        thread = threading.Thread(target=closing.close)
        thread.start()
        thread.join()
    for refused in (lambda: agent.session("."), lambda: agent.resume_session("x", SessionOptions()), lambda: agent.register_log(print)):
        with pytest.raises(CodeError) as err:
            refused()
        assert err.value.code == "SESSION_CLOSED"


# --- copies ---

@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_belongs_to_the_process_is_not_copied(place: Place, copied: Callable[[Any], Any]) -> None:
    agent = place.agent("say x")
    session = opened(place, agent)
    registration = agent.register_session_store("s", FileStore())
    context: list[Context] = []

    def command(args: str, ctx: Json) -> str:
        context.append(Context.current())
        return ""

    session.register_command("c", "d", command)
    session.send("/c")
    with session.stream("x") as stream:
        for live in (agent, session, stream, registration, MemorySessionStore(), context[0]):
            with pytest.raises(TypeError, match=f"{type(live).__name__} objects belong to this process and cannot be copied or pickled"):
                copied(live)
        list(stream)


class FileStore:
    """A store of no use."""

    def load(self, id: str, start: int, limit: int) -> None: ...
    def append(self, id: str, generation: int, start: int, facts: list[str]) -> None: ...
    def save(self, id: str, generation: int, snapshot: str) -> None: ...
    def delete(self, id: str) -> None: ...
    def list(self) -> list[str]: return []


def test_values_travel() -> None:
    options = SessionOptions()
    options.session_store, options.role = FileSessionStore("s"), "r"
    for twin in (pickle.loads(pickle.dumps(options)), copy.copy(options), copy.deepcopy(options)):
        assert twin.to_wire() == options.to_wire()


# --- functions of the program that misbehave ---

class Goes(BaseException):
    """No Exception, as Ctrl-C is none."""


def test_odd_but_right_histories() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    for history in ([message], (message,), iter([message])):
        assert _request("x", history) == {"prompt": "x", "history": [message]}  # type: ignore[arg-type]
    for wrong in (5, "text", [5], message):
        with pytest.raises(CodeError, match="history must be a list"):
            _request("x", wrong)  # type: ignore[arg-type]
    with pytest.raises(CodeError, match="text as keys"):
        _request({"prompt": "x", 1: 2}, None)  # type: ignore[dict-item]


def raises(error: type[BaseException]) -> Callable[[], Any]:
    def tool() -> Any:
        raise error("not today")
    return tool


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unfinished(ExtensionError):
    """A subclass that forgets what its base has."""

    def __init__(self, words: str) -> None:
        Exception.__init__(self, words)


def pieces() -> Iterator[str]:
    yield "a"


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


MISBEHAVES: dict[str, tuple[Callable[[], Any], str]] = {
    "KeyboardInterrupt": (raises(KeyboardInterrupt), "KeyboardInterrupt: not today"),
    "SystemExit": (raises(SystemExit), "SystemExit: not today"),
    "GeneratorExit": (raises(GeneratorExit), "GeneratorExit: not today"),
    "a class of its own": (raises(Goes), "Goes: not today"),
    "an error without words": (raises(Speechless), "Speechless"),
    "an error without attributes": (raises(Unfinished), "Unfinished: not today"),
    "pieces": (pieces, "not a generator"),
    "RecursionError": (lambda: MISBEHAVES["RecursionError"][0](), "RecursionError"),
    "endless": (endless, "Circular reference"),
    "a bad text": (lambda: "\ud800", "not valid Unicode"),
}


@pytest.mark.parametrize("name", MISBEHAVES)
@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_tool_that_misbehaves_is_a_failed_result(place: Place, name: str, way: str) -> None:
    fn, words = MISBEHAVES[name]

    def plain() -> Any:
        return fn()

    async def waits() -> Any:
        return fn()

    session = place.session("say x")
    session.register_tool(plain if way == "plain" else waits, name="t", read_only=True)
    result = session.tool("t")
    assert result.exit_code != 0 and words in result.output
    assert session.tool("ls").ok


@pytest.mark.parametrize("value, output", [("x" * (50 << 20), "the output"), (None, ""), (b"bytes", "b'bytes'"), (Odd, "Odd"), ({1: 2}, '{"1": 2}')],
                         ids=["50 MB", "None", "bytes", "a class", "a mapping"])
def test_what_a_tool_gives(place: Place, value: Any, output: str) -> None:
    session = place.session("say x")
    session.register_tool(lambda: value, name="t", read_only=True)
    result = session.tool("t")
    assert output in result.output or result.output.startswith("x" * 1000)


@pytest.mark.parametrize("kind, spec, op, ask", [
    ("context", {}, "query", "say x"), ("permission", {"check_only": True}, "check", "call ls {}\nend\nsay x"), ("tool", {"read_only": True}, "call", "call n {}\nend\nsay x"),
    ("command", {}, "run", "say x")])
@pytest.mark.parametrize("answer", [5, None, [], "x" * (65 << 20), Odd(), float("nan"), [[[[[]]]]] , {"unknown": 1}],
                         ids=["a number", "None", "a list", "65 MB", "an object", "nan", "deep", "unknown"])
def test_an_answer_that_is_none_is_a_failure_at_once(place: Place, kind: str, spec: Json, op: str, ask: str, answer: Any) -> None:
    session = place.session(ask)
    with session.register_extension(kind, {"name": "n", **spec}, {op: lambda params, context: answer}):
        assert session.send("/n" if kind == "command" else "go").text  # and not after its deadline


def test_a_function_that_never_returns_holds_nothing_up(place: Place) -> None:
    session = place.session(SLOW)
    stuck, free = threading.Event(), threading.Event()

    def tool() -> str:
        stuck.set()
        free.wait(20)
        return "late"

    session.register_tool(tool, name="t", read_only=True, timeout_ms=50)
    result = session.tool("t")
    assert stuck.is_set() and result.error_kind == {"type": "timeout", **(result.error_kind or {})}
    assert session.tool("ls").ok
    session.close()
    free.set()


def test_a_registration_is_refused_in_words(place: Place) -> None:
    agent = place.agent("say x")
    for kind, spec, handlers in (
            (3, {"name": "n"}, {}), ("context", [], {}), ("context", {}, {}), ("context", {"name": 3}, {}), ("context", {"name": "n"}, []),
            ("context", {"name": "n"}, {"query": 3}), ("context", {"name": "n"}, {3: print})):
        with pytest.raises(TypeError) as err:
            agent.register_extension(kind, spec, handlers)  # type: ignore[arg-type]
        assert isinstance(err.value, CodeError) and err.value.op == "host.register"
    for unknown, odd in (("nothing", {"name": "n"}), ("context", {"name": "n", "odd": "1"}), ("context", {"name": "no name"})):
        with pytest.raises(CodeError):
            agent.register_extension(unknown, odd, {})


def test_no_thread_is_left_by_an_agent(place: Place) -> None:
    agent = place.agent("say x")
    agent.register_context_provider("n", lambda q: [])
    opened(place, agent).send("x")
    agent.close()
    until(lambda: not [t for t in threading.enumerate() if t.name == "a3s-desk"])

"""Models that this program supplies."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any, AsyncIterator, Callable, Generator, Iterator

import pytest

from a3s_code import CodeError, Context, EventType, ExtensionError, LLMError, PermissionPolicy
from conftest import Place, opened, until


def generated(request: Any) -> Iterator[Any]:
    yield {"reasoning": "hm"}
    yield "hel"
    yield {"text": "lo"}
    yield {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def returned(request: Any) -> Generator[Any, None, Any]:
    yield "hello"
    return {"usage": {"prompt_tokens": 3, "completion_tokens": 2}, "stop": "end_turn"}


async def generated_async(request: Any) -> AsyncIterator[Any]:
    for piece in generated(request):
        await asyncio.sleep(0)
        yield piece


async def at_once_async(request: Any) -> str:
    return "hello"


async def list_async(request: Any) -> list[str]:
    return ["hel", "lo"]


class Client:
    def complete(self, request: Any) -> Any:
        return {"text": "hello", "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


class AsyncClient:
    async def complete(self, request: Any) -> Any:
        return "hello"


class Streamer:
    def stream(self, request: Any) -> Any:
        return generated(request)

    def complete(self, request: Any) -> Any:
        raise AssertionError("not asked")


class Callable_:
    async def __call__(self, request: Any) -> str:
        return "hello"


MODELS: dict[str, Any] = {
    "a text": lambda request: "hello",
    "a list": lambda request: ["hel", "lo"],
    "an object": lambda request: {"text": "hello"},
    "a generator": generated,
    "a generator that returns": returned,
    "an async generator": generated_async,
    "a function that gives a coroutine": lambda request: at_once_async(request),
    "a function that gives an async generator": lambda request: generated_async(request),
    "async": at_once_async,
    "an async list": list_async,
    "complete": Client(),
    "async complete": AsyncClient(),
    "stream": Streamer(),
    "an async callable": Callable_(),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model(host: Place, name: str) -> None:
    agent = host.agent("")
    agent.register_model("mine", MODELS[name], context=50_000)
    result = opened(host, agent).send("hi")
    assert result.text == "hello"
    if "generator" in name or name in ("complete", "stream"):
        assert (result.prompt_tokens, result.completion_tokens) == (3, 2) or "coroutine" in name


@pytest.mark.parametrize("name", ["a generator", "an async generator", "async"])
def test_a_model_in_a_loop(host: Place, name: str) -> None:
    threads = set()
    loops: list[Any] = []

    async def watched(request: Any) -> AsyncIterator[Any]:
        threads.add(threading.current_thread())
        assert asyncio.get_running_loop() is loops[0]
        async for piece in generated_async(request):
            yield piece

    async def main() -> str:
        loops.append(asyncio.get_running_loop())
        async with host.agent("") as agent:
            agent.register_model("mine", watched if name == "an async generator" else MODELS[name])
            session = await agent.session_async(str(host.workspace))
            return "".join([e.text or "" async for e in session.stream("hi") if e.type == EventType.TEXT_DELTA])

    assert asyncio.run(main()) == "hello"
    assert threads <= {threading.main_thread()}


def test_a_model_calls_tools_and_gets_the_conversation(host: Place) -> None:
    (host.workspace / "a.txt").write_text("the content\n")
    asked: list[Any] = []

    def model(request: Any) -> Iterator[Any]:
        asked.append(request)
        if len(asked) == 1:
            yield "Let me look."
            yield {"tool_call": {"id": "c1", "name": "read", "arguments": {"file_path": "a.txt"}}}
        else:
            yield "It says so."

    agent = host.agent("")
    agent.register_model("mine", model)
    session = opened(host, agent, permission_policy=PermissionPolicy(allow=["read*"]))
    assert session.send("what?").text == "It says so."
    assert asked[0]["model"] == "mine" and asked[0]["session_id"] == session.session_id
    assert "read" in [t["name"] for t in asked[0]["tools"]]
    assert [m["role"] for m in asked[1]["messages"]] == ["user", "assistant", "tool"]
    assert "the content" in json.dumps(asked[1]["messages"][2])


def raises(err: BaseException) -> Callable[[Any], Any]:
    def model(request: Any) -> Any:
        raise err
    return model


def raises_later(request: Any) -> Iterator[str]:
    yield "half"
    raise ValueError("cable cut")


async def raises_later_async(request: Any) -> AsyncIterator[str]:
    yield "half"
    raise ValueError("cable cut")


FAILURES: dict[str, tuple[Any, str, bool]] = {
    "raises": (raises(ValueError("no network")), "ValueError: no network", False),
    "raises without words": (raises(KeyError()), "KeyError: KeyError", False),
    "raises surrogates": (raises(ValueError("\ud800")), "ValueError: ?", False),
    "exits": (raises(SystemExit(3)), "SystemExit: 3", False),
    "may be tried again": (raises(ExtensionError("busy", retryable=True, retry_after_ms=1)), "ExtensionError: busy", True),
    "details that are no JSON": (raises(ExtensionError("odd", details={"a": object()})), "ExtensionError: odd", False),
    "raises later": (raises_later, "ValueError: cable cut", False),
    "raises later, async": (raises_later_async, "ValueError: cable cut", False),
    "a number": (lambda request: 7, "must be an object, not int", False),
    "a number in pieces": (lambda request: iter([7]), "must be an object, not int", False),
    "an unknown key": (lambda request: {"txt": "x"}, "unknown field", False),
    "no JSON": (lambda request: {"text": b"x"}, "not JSON serializable", False),
    "nothing": (lambda request: None, "empty answer", False),
    "an empty chunk": (lambda request: iter([{}]), "exactly one", False),
    "a surrogate": (lambda request: "\ud800", "not valid Unicode", False),
    "NaN": (lambda request: {"text": "x", "usage": {"prompt_tokens": float("nan")}}, "JSON", False),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_model_that_fails(host: Place, name: str) -> None:
    model, words, retryable = FAILURES[name]
    agent = host.agent("")
    agent.register_model("mine", model)
    with pytest.raises(LLMError) as err:
        opened(host, agent, circuit_breaker_threshold=1).send("hi")
    assert words in str(err.value) and err.value.retryable == retryable


@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_model_that_hangs(host: Place, way: str) -> None:
    """Its deadline ends the wait, and reaches the function."""
    seen: list[Any] = []

    def hang(request: Any) -> str:
        context = Context.current()
        assert context.deadline is not None and context.deadline - time.monotonic() < 0.2
        seen.append(context.wait_cancelled(10))
        return "late"

    async def hang_async(request: Any) -> str:
        try:
            await asyncio.sleep(10)
        finally:
            seen.append(Context.current().cancelled)
        return "late"

    agent = host.agent("")
    agent.register_model("mine", hang if way == "plain" else hang_async, timeout_ms=100)
    with pytest.raises(LLMError) as err:
        opened(host, agent, circuit_breaker_threshold=1).send("hi")
    assert err.value.retryable and "within 100ms" in str(err.value)
    until(lambda: seen == [True])


@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_cancelled_run_closes_the_generator(host: Place, way: str) -> None:
    seen: list[str] = []

    def model(request: Any) -> Iterator[str]:
        try:
            while True:
                yield "x"
                time.sleep(0.001)
        finally:
            seen.append(Context.current().reason)

    async def model_async(request: Any) -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(0.001)
        finally:
            seen.append(Context.current().reason)

    agent = host.agent("")
    agent.register_model("mine", model if way == "plain" else model_async)
    session = opened(host, agent)
    stream = session.stream("hi")
    for event in stream:
        if event.type == EventType.TEXT_DELTA:
            session.cancel()
    until(lambda: seen)
    assert seen == ["cancelled"]
    assert session.runs()[0]["status"] == "cancelled"


def test_a_model_uses_the_session_it_serves(host: Place) -> None:
    (host.workspace / "a.txt").write_text("the content\n")
    session: Any = None

    def model(request: Any) -> str:
        assert len(session.history()) == 1
        with pytest.raises(CodeError):
            session.send("another")
        return str(session.read_file("a.txt"))

    async def model_async(request: Any) -> str:
        return str((await session.tool_async("read", {"file_path": "a.txt"})).output)

    agent = host.agent("")
    for client in (model, model_async):
        with agent.register_model("mine", client):
            session = opened(host, agent)
            assert "the content" in session.send("hi").text

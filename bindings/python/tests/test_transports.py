"""Transports that this program supplies."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Iterator

import pytest

from a3s_code import Context, LLMError
from conftest import Place, limit, opened


OVER = """default_model = "openai/gpt"
providers "openai" { apiKey = "sk-the-key" transport = "host/tunnel" baseUrl = "https://models.example" models "gpt" { } }
"""
SSE = b"""data: {"id":"c1","choices":[{"index":0,"delta":{"content":"hel"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}

data: [DONE]

"""
EVENTS = {"content-type": "text/event-stream"}


class Body:
    """A body with an end, as those of HTTP clients."""

    def __init__(self) -> None:
        self.closed = False
        self.rest = [SSE[i:i + 20] for i in range(0, len(SSE), 20)]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.rest)

    def close(self) -> None:
        self.closed = True


async def body_async() -> AsyncIterator[bytes]:
    for piece in Body():
        yield piece


async def send_async(method: str, url: str, headers: Any, body: bytes) -> Any:
    return 200, EVENTS, body_async()


class Tunnel:
    async def round_trip(self, method: str, url: str, headers: Any, body: bytes) -> Any:
        return 200, EVENTS, Body()


BODY = Body()
TRANSPORTS: dict[str, Any] = {
    "at once": lambda method, url, headers, body: (200, EVENTS, SSE),
    "as text": lambda method, url, headers, body: (200, EVENTS, SSE.decode()),
    "in pieces": lambda method, url, headers, body: (200, EVENTS, BODY),
    "an async body": lambda method, url, headers, body: (200, EVENTS, body_async()),
    "async": send_async,
    "an object": Tunnel(),
}


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport(place: Place, name: str) -> None:
    place.acl.write_text(OVER)
    agent = place.agent("")
    asked: list[Any] = []
    served = TRANSPORTS[name]

    def send(method: str, url: str, headers: Any, body: bytes) -> Any:
        asked.append((method, url, headers["Authorization"], json.loads(body)["model"]))
        return getattr(served, "round_trip", served)(method, url, headers, body)

    agent.register_transport("tunnel", served if name == "an object" else send)
    result = opened(place, agent).send("hi")
    assert (result.text, result.total_tokens) == ("hello", 5)
    assert asked == ([] if name == "an object" else [("POST", "https://models.example/v1/chat/completions", ["Bearer sk-the-key"], "gpt")])
    assert name != "in pieces" or BODY.closed


BAD_TRANSPORTS: dict[str, tuple[Any, str]] = {
    "raises": (lambda *args: 1 / 0, "ZeroDivisionError: division by zero"),
    "refuses": (lambda *args: (401, {}, b""), "refused the key"),
    "garbage": (lambda *args: "x", "ValueError"),
    "nothing": (lambda *args: None, "TypeError"),
    "no status": (lambda *args: (None, {}, b""), "status 0"),
    "numbers in the body": (lambda *args: (200, EVENTS, [1, 2]), "stream incomplete"),
    "hangs": (lambda *args: Context.current().wait_cancelled(5), "within 100ms"),
}


@pytest.mark.parametrize("name", BAD_TRANSPORTS)
def test_a_transport_that_fails(place: Place, name: str) -> None:
    place.acl.write_text(OVER)
    agent = place.agent("")
    agent.register_transport("tunnel", BAD_TRANSPORTS[name][0], timeout_ms=limit(name))
    with pytest.raises(LLMError) as err:
        opened(place, agent, circuit_breaker_threshold=1).send("hi")
    assert BAD_TRANSPORTS[name][1] in str(err.value)

"""JSON by the parts of C and by json itself: the same texts, values and refusals."""

from __future__ import annotations

import json
import random
from typing import Any, Callable

import pytest

from a3s_code import _wire

BOTH = {"quick": _wire._quick(), "plain": _wire._plain()}
VALUES: list[Any] = [
    None, True, False, 0, -1, 10**30, 1.5, 1e300, "", "text", 'quo"te', "back\\slash", "\u00e9\u2028\U0001f600", "\x00\x1f\x7f", [], {},
    [[[[]]]], {"a": {"b": [1, {"c": None}]}}, {"1": 1}, ("a", "tuple"), {"key": "v" * 100_000},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: str(v)[:20])
def test_values(value: Any) -> None:
    want = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for encode, decode in BOTH.values():
        assert encode(value) == want
        assert decode(want) == decode(f" {want}\n") == json.loads(want)


def test_many_values() -> None:
    rng = random.Random(7)

    def some(depth: int) -> Any:
        kind = rng.randrange(8 if depth else 6)
        if kind == 6:
            return [some(depth - 1) for _ in range(rng.randrange(5))]
        if kind == 7:
            return {some_text(): some(depth - 1) for _ in range(rng.randrange(5))}
        return [None, rng.random() * 10 ** rng.randrange(-20, 20), rng.randrange(-10**20, 10**20), some_text(), True, False][kind]

    def some_text() -> str:
        return "".join(chr(rng.choice((rng.randrange(128), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)))) for _ in range(rng.randrange(8)))

    for _ in range(500):
        value = some(4)
        texts = {encode(value) for encode, _ in BOTH.values()}
        assert len(texts) == 1 and all(decode(text) == value for _, decode in BOTH.values() for text in texts)


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("text", ["", " ", "{", "nul", '{"a":}', "[1] 2", '"\x01"', "[1,]", '{"a" 1}'])
def test_texts_that_are_none(way: str, text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        BOTH[way][1](text)


def circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("make, error", [
    (lambda: float("nan"), ValueError), (lambda: [float("inf")], ValueError), (object, TypeError), (lambda: {(): 1}, TypeError),
    (circle, ValueError), (lambda: b"x", TypeError)])
def test_values_that_are_none(way: str, make: Callable[[], Any], error: type[Exception]) -> None:
    encode = BOTH[way][0]
    value = make()
    for _ in range(2):  # a failure leaves nothing behind
        with pytest.raises(error):
            encode(value)
    assert encode([value.__class__.__name__]) == f'["{type(value).__name__}"]'


def test_without_those_parts_json_itself_is_used(finish: Callable[..., str]) -> None:
    assert finish("""
        import sys
        sys.modules["_json"] = None
        from a3s_code import _wire
        print(_wire.decode.__module__, _wire.dumps({"a": [1.5, None]}, ""), _wire.loads(b'{"a": 1}'))
    """) == "json b'{\"a\":[1.5,null]}' {'a': 1}\n"


def test_importing_loads_neither_json_nor_typing(finish: Callable[..., str]) -> None:
    assert finish("""
        import sys
        before = set(sys.modules)
        import a3s_code
        print(sorted({"asyncio", "dataclasses", "inspect", "json", "logging", "re", "typing"} & (set(sys.modules) - before)))
    """) == "[]\n"

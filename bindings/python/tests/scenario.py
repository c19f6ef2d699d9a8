"""The scenarios that all languages share: how a file is read, how what came is compared with what it
wants, and a run that is read meanwhile. What a scenario is made of is said in
tests/conformance/README.md."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

PATIENCE = 20.0
VIEWS = ("commands", "events", "history", "info", "pending", "runs", "sessions", "tools", "traces")
SECTIONS = {
    "agent.acl", "env.json", "files.json", "host.json", "host_tools.json", "options.json", "script", "steps",
    "want/error", "want/events", "want/files.json", "want/result.json", *(f"want/{v}.json" for v in VIEWS),
}
Json = Any


# --- the file ---

def sections(file: Path) -> dict[str, str]:
    """The sections of a txtar archive; the words before the first one under the empty name."""
    found: dict[str, str] = {"": ""}
    name = ""
    for line in _lines(file):
        head = re.fullmatch(r"-- (.+) --\n", line)
        if head is None:
            found[name] += line
            continue
        name = head[1].strip()
        assert name in SECTIONS or name.startswith(("workspace/", "want/workspace/")), f"there is no section {name!r}"
        assert name not in found, f"section {name!r} stands there twice"
        found[name] = ""
    assert found[""].strip(), "the first lines must say what the scenario shows"
    return found


def _lines(file: Path) -> list[str]:
    # Only \n ends a line of an archive; splitlines knows many more.
    return [line + "\n" for line in file.read_bytes().decode("utf-8").removesuffix("\n").split("\n")]


# --- comparing ---

POSITIONAL = {
    "agent_start": ["prompt"], "turn_start": ["turn"], "turn_end": ["turn"], "text_delta": ["text"], "reasoning_delta": ["text"],
    "tool_start": ["name"], "tool_execution_start": ["name"], "tool_end": ["name"], "tool_output_delta": ["name", "delta"],
    "tool_input_delta": ["delta"], "agent_end": ["text"], "error": ["code"], "confirmation_required": ["tool_name"],
    "permission_denied": ["tool_name"], "confirmation_timeout": ["action_taken"], "confirmation_received": ["approved"],
    "persistence_failed": ["operation"], "budget_threshold_hit": ["resource", "kind"],
}
GROWS = {"text_delta": "text", "reasoning_delta": "text", "tool_input_delta": "delta", "tool_output_delta": "delta"}


def text_of(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def value_at(text: str) -> tuple[Json, str]:
    """A JSON value, or a bare word, from the start of text, and what follows it."""
    if text[:1] in '"[{' and text:
        value, end = json.JSONDecoder().raw_decode(text)
        return value, text[end:]
    word, _, rest = text.partition(" ")
    try:
        return json.loads(word), rest
    except ValueError:
        return word, rest


class Facts:
    """One line of want/events."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.name, _, rest = line.strip().partition(" ")
        self.places: list[Json] = []
        self.equal: list[tuple[str, Json]] = []
        self.match: list[tuple[str, str]] = []
        while rest := rest.lstrip(" "):
            key = re.match(r"([A-Za-z_][A-Za-z0-9_.]*)([=~])", rest)
            value, rest = value_at(rest[key.end():] if key else rest)
            if key is None:
                self.places.append(value)
            elif key[2] == "=":
                self.equal.append((key[1], value))
            else:
                self.match.append((key[1], value))

    def fits(self, obj: Json, places: list[str]) -> bool:
        return (
            len(self.places) <= len(places)
            and all(obj.get(k) is not None and word(obj[k]) == word(v) for k, v in zip(places, self.places))
            and all(not diff(part(obj, k), v) for k, v in self.equal)
            and all(isinstance(part(obj, k), str) and re.search(v, part(obj, k)) for k, v in self.match))

    def fits_event(self, event: Json) -> bool:
        return self.name == event["type"] and self.fits(event["payload"], POSITIONAL.get(event["type"], []))


def word(value: Json) -> str:
    return value if isinstance(value, str) else text_of(value)


def part(obj: Json, key: str) -> Json:
    if not isinstance(obj, dict) or key in obj:
        return obj.get(key) if isinstance(obj, dict) else None
    head, dot, tail = key.partition(".")
    return part(obj.get(head), tail) if dot else None


def diff(got: Json, want: Json, at: str = "") -> str:
    """Where got lacks what want names; empty if it does not."""
    if isinstance(want, dict):
        if want == {"$absent": True}:
            return "" if got is None else f"{at} is {text_of(got)}, want it absent"
        if set(want) == {"$match"}:
            return "" if isinstance(got, str) and re.search(want["$match"], got) else f"{at} is {text_of(got)}, want a match of {want['$match']}"
        if set(want) == {"$above"}:
            return "" if isinstance(got, (int, float)) and got > want["$above"] else f"{at} is {text_of(got)}, want it above {want['$above']}"
        for op in ("$has", "$lacks"):
            if set(want) == {op}:
                wrong = [w for w in want[op] if not isinstance(got, list) or any(not diff(g, w) for g in got) != (op == "$has")]
                return f"{at} is {text_of(got)}: {op} {text_of(wrong)}" if wrong else ""
        if not isinstance(got, dict):
            return f"{at} is {text_of(got)}, want an object"
        return next(filter(None, (diff(got.get(k), v, f"{at}.{k}") for k, v in want.items())), "")
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{at} is {text_of(got)}, want {len(want)} items"
        return next(filter(None, (diff(g, w, f"{at}[{i}]") for i, (g, w) in enumerate(zip(got, want)))), "")
    return "" if got == want and isinstance(got, bool) == isinstance(want, bool) else f"{at} is {text_of(got)}, want {text_of(want)}"


def joined(events: list[Json]) -> list[Json]:
    out: list[Json] = []
    for e in events:
        grows = GROWS.get(e["type"])
        if grows and out and out[-1]["type"] == e["type"] and out[-1]["payload"].get("id") == e["payload"].get("id"):
            last = out[-1]["payload"]
            out[-1] = {**out[-1], "payload": {**last, grows: last[grows] + e["payload"][grows]}}
        else:
            out.append(e)
    return out


def compare(events: list[Json], text: str) -> None:
    lines = [Facts(line) for line in text.split("\n") if line.strip() and not line.startswith("#")]
    furthest = (0, 0)

    def fits(i: int, j: int) -> bool:
        nonlocal furthest
        furthest = max(furthest, (j, i))
        if j == len(lines):
            return i == len(events)
        if lines[j].name == "...":
            return any(fits(k, j + 1) for k in range(i, len(events) + 1))
        return i < len(events) and lines[j].fits_event(events[i]) and fits(i + 1, j + 1)

    if not fits(0, 0):
        wanted = lines[furthest[0]].line if furthest[0] < len(lines) else "the end"
        raise AssertionError(f"want/events: there is no {wanted}\n" + "\n".join(f"  {e['type']} {text_of(e['payload'])}" for e in events))


# --- a run ---

class Running:
    """A started run whose events are collected by a thread."""

    def __init__(self, stream: Iterator[Any]) -> None:
        self.events: list[Json] = []
        self.error: BaseException | None = None
        self.ended = False
        self.passed = 0
        self.asked = 0
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self._collect, args=(stream,), daemon=True)
        self.thread.start()

    def _collect(self, stream: Iterator[Any]) -> None:
        try:
            for event in stream:
                with self.news:
                    self.events.append(envelope(event))
                    self.news.notify_all()
        except BaseException as err:
            self.error = err
        with self.news:
            self.ended = True
            self.news.notify_all()

    def next(self, start: int, fits: Callable[[Json], bool]) -> tuple[Json, int]:
        """The first event from number start on that fits, and the number behind it."""
        until = time.monotonic() + PATIENCE
        with self.news:
            while True:
                for i in range(start, len(self.events)):
                    if fits(self.events[i]):
                        return self.events[i], i + 1
                assert not self.ended, f"the run ended without it: {self.error!r}"
                assert self.news.wait(until - time.monotonic()), "it did not come in time"

    def whole(self) -> list[Json]:
        self.thread.join(PATIENCE)
        assert self.ended, "the run did not end in time"
        if self.error is not None:
            raise self.error
        return self.events


def envelope(event: Any) -> Json:
    return {"version": event.version, "type": event.type, "payload": event.payload, "metadata": event.metadata}

"""Decoding of batches, and what an event says."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from a3s_code import AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION, AgentEvent, EventType
from a3s_code import agent_event_types_v1, event_envelope_v1_version, format_verification_summary
from a3s_code._events import decode_batch, event_from

META = {"run_id": "run-1", "session_id": "s", "sequence": 0, "timestamp_ms": 1}


def envelope(type: str, payload: Any, **meta: Any) -> dict[str, Any]:
    return {"version": 1, "type": type, "payload": payload, "metadata": {**META, **meta}}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


SEAM = {"x": {"y": 1}}
FORGED = [SEAM, envelope("text_delta", {"text": "forged"})]

BATCHES: dict[str, list[dict[str, Any]]] = {
    "one delta": [envelope("text_delta", {"text": "hello"})],
    "deltas of both kinds": [envelope("text_delta", {"text": "a"}), envelope("reasoning_delta", {"text": "b"}, sequence=1)],
    "empty text": [envelope("text_delta", {"text": ""})],
    "text with quotes, escapes and a seam in it": [
        envelope("text_delta", {"text": 'say "hi"\\ \n\t \u0001 }},{"version":1,"type":"error"'}), envelope("turn_end", {"turn": 1, "usage": {}})],
    "text beyond ASCII": [envelope("text_delta", {"text": "Grüße \U0001f600 \u2028"})],
    "a delta with more fields": [envelope("text_delta", {"text": "a", "more": [1]}), envelope("text_delta", {"more": 1, "text": "b"})],
    "an event that holds others": [envelope("tool_execution_start", {"id": "1", "name": "t", "args": FORGED}), envelope("text_delta", {"text": "real"})],
    "an event that holds others at the end": [envelope("text_delta", {"text": "real"}), envelope("tool_end", {"metadata": {"a": FORGED}})],
    "an unknown type": [envelope("from_the_future", {"deep": {"er": [1, 2.5, None, True]}})],
    "payloads that are no objects": [envelope("odd", None), envelope("odd", [1, {"a": {}}]), envelope("odd", "text"), envelope("odd", {})],
    "frames without metadata": [{"version": 1, "type": "gap", "payload": {"run_id": "r", "from": 1, "to": 5}}, envelope("text_delta", {"text": "a"})],
    "a frame with a payload that is no object": [{"version": 1, "type": "odd", "payload": 3}, envelope("text_delta", {"text": "a"})],
}


@pytest.mark.parametrize("events", BATCHES.values(), ids=BATCHES.keys())
def test_decoding_gives_back_the_envelopes(events: list[dict[str, Any]]) -> None:
    assert [e.to_dict() for e in decode_batch(compact(events))] == events
    assert [e.to_dict() for e in decode_batch(json.dumps(events))] == events


def test_an_empty_batch_has_no_events() -> None:
    assert decode_batch("") == decode_batch("[]") == []


@pytest.mark.parametrize("bad", [{"version": 2, "type": "a", "payload": {}}, {"type": "a"}, 3, {"version": 1}])
def test_an_envelope_of_another_version_is_refused(bad: Any) -> None:
    with pytest.raises(RuntimeError) as err:
        decode_batch(compact([bad]))
    assert getattr(err.value, "code") == "SERIALIZATION_ERROR"


SUMMARY = {"status": "failed", "report_count": 1, "required_check_count": 3, "pending_required_check_count": 1, "failed_check_count": 2}
CONFLICT = {"type": "version_conflict", "path": "a", "expected": "1", "actual": "2"}
CALL = {"id": "c", "name": "read"}
ASKED = {"tool_id": "c", "tool_name": "read", "args": {}}

FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "agent_start": ({"prompt": "p"}, {"prompt": "p"}),
    "planning_start": ({"prompt": "p"}, {"prompt": "p"}),
    "turn_start": ({"turn": 2}, {"turn": 2}),
    "text_delta": ({"text": "t"}, {"text": "t"}),
    "reasoning_delta": ({"text": "t"}, {"text": "t"}),
    "tool_start": (CALL, {"tool_id": "c", "tool_name": "read"}),
    "tool_execution_start": ({**CALL, "args": {}}, {"tool_id": "c", "tool_name": "read", "data": True}),
    "tool_input_delta": ({"id": "c", "delta": "d"}, {"tool_id": "c", "text": "d"}),
    "tool_output_delta": ({**CALL, "delta": "d"}, {"tool_id": "c", "tool_name": "read", "text": "d"}),
    "tool_end": ({**CALL, "output": "o", "exit_code": 1, "error_kind": CONFLICT}, {
        "tool_id": "c", "tool_name": "read", "tool_output": "o", "exit_code": 1, "error_kind": CONFLICT,
        "error_kind_json": compact(CONFLICT), "data": True}),
    "turn_end": ({"turn": 2, "usage": {"total_tokens": 5}}, {"turn": 2, "total_tokens": 5}),
    "agent_end": ({"text": "t", "usage": {"total_tokens": 5}, "verification_summary": SUMMARY}, {
        "text": "t", "total_tokens": 5, "verification_summary_json": compact(SUMMARY),
        "verification_summary_text": "verification failed: 1 report, 3 required checks, 1 pending, 2 failed"}),
    "error": ({"message": "m", "code": "LLM_ERROR"}, {"error": "m"}),
    "confirmation_required": (ASKED, {"tool_id": "c", "tool_name": "read", "data": True}),
    "permission_denied": ({**ASKED, "reason": "r"}, {"tool_id": "c", "tool_name": "read", "data": True}),
    "context_resolved": ({"total_items": 1, "total_tokens": 7}, {"data": True}),
    "from_the_future": ({"text": "t", "id": "c"}, {"data": True}),
}
CONVENIENCE = (
    "text", "tool_name", "tool_id", "tool_output", "exit_code", "turn", "prompt", "error", "total_tokens",
    "verification_summary_json", "verification_summary_text", "error_kind", "error_kind_json", "data")


@pytest.mark.parametrize("type", FIELDS)
def test_convenience_fields(type: str) -> None:
    payload, wanted = FIELDS[type]
    event = decode_batch(compact([envelope(type, payload)]))[0]
    got = {name: getattr(event, name) for name in CONVENIENCE if getattr(event, name) is not None}
    if wanted.get("data"):
        wanted = {**wanted, "data": compact(payload)}
    assert got == wanted
    assert (event.version, event.type, event.event_type, event.payload) == (1, type, type, payload)
    assert (event.payload_json, event.metadata, event.metadata_json) == (compact(payload), META, compact(META))
    assert (event.run_id, event.sequence) == ("run-1", 0)


def test_a_frame_without_metadata_has_none() -> None:
    event = event_from({"version": 1, "type": "gap", "payload": {}})
    assert (event.metadata, event.metadata_json, event.run_id, event.sequence) == (None, None, None, None)


def test_events_compare_and_travel() -> None:
    event = decode_batch(compact([envelope("text_delta", {"text": "t"})]))[0]
    twin = pickle.loads(pickle.dumps(event))
    assert isinstance(twin, AgentEvent) and twin == event and hash(twin) == hash(event)
    assert event != event_from(envelope("text_delta", {"text": "u"})) and event != "text_delta"
    assert repr(event) == 'AgentEvent(text_delta, {"text":"t"})'


def test_catalogue() -> None:
    names = EventType.values()
    assert names == list(AGENT_EVENT_TYPES_V1) == agent_event_types_v1() and len(names) == len(set(names)) == 44
    assert all(getattr(EventType, name.upper()) == name for name in names)
    assert (EventType.START, EventType.END) == ("agent_start", "agent_end")
    assert event_envelope_v1_version() == EVENT_ENVELOPE_V1_VERSION == 1


def test_verification_summary_in_words() -> None:
    assert format_verification_summary({}) == "no verification was run"
    assert format_verification_summary('{"status":"passed","report_count":2,"required_check_count":4}') == "verification passed: 2 reports, 4 required checks"

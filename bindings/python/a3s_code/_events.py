"""Events as a host sees them, and the decoder that makes them fast.

Nearly all events of a run are text deltas. A batch is therefore cut at the seams between
events and a delta is built from slices, while everything else goes through the JSON decoder;
payload, metadata and the convenience fields of an event are worked out when they are asked
for. A seam that is not one (the same bytes inside an event) leaves a piece that is no JSON
text by itself, and then the whole batch is decoded the plain way.
"""

from __future__ import annotations

from collections.abc import Mapping

from ._errors import bad_type, error_from
from ._generated import AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION
from ._wire import decode as _decode, text as to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UNSET: Any = object()


def agent_event_types_v1() -> list[str]:
    """The names of the catalogue in canonical order."""
    return list(AGENT_EVENT_TYPES_V1)


def event_envelope_v1_version() -> int:
    """The version of the event envelope: 1."""
    return EVENT_ENVELOPE_V1_VERSION


# Which payload field each convenience field reads, by type. A type that is not here has none.
_TOOL = {"tool_id": "id", "tool_name": "name"}
_QUESTION = {"tool_id": "tool_id", "tool_name": "tool_name"}
_FIELDS: dict[str, dict[str, str]] = {
    "agent_start": {"prompt": "prompt"},
    "planning_start": {"prompt": "prompt"},
    "turn_start": {"turn": "turn"},
    "turn_end": {"turn": "turn"},
    "text_delta": {"text": "text"},
    "reasoning_delta": {"text": "text"},
    "tool_start": _TOOL,
    "tool_execution_start": _TOOL,
    "tool_input_delta": {"tool_id": "id", "text": "delta"},
    "tool_output_delta": {**_TOOL, "text": "delta"},
    "tool_end": {**_TOOL, "tool_output": "output", "exit_code": "exit_code", "error_kind": "error_kind"},
    "agent_end": {"text": "text", "verification_summary": "verification_summary"},
    "error": {"error": "message"},
    "confirmation_required": _QUESTION,
    "permission_denied": _QUESTION,
    "tool_request_bound": _QUESTION,
}
_NONE: dict[str, str] = {}
_WITH_USAGE = frozenset({"turn_end", "agent_end"})
_WITHOUT_DATA = frozenset({
    "agent_start", "turn_start", "text_delta", "reasoning_delta", "tool_start", "tool_input_delta",
    "tool_output_delta", "turn_end", "agent_end", "error", "planning_start",
})


class AgentEvent:
    """One event of a run.

    Attributes:
        type: wire name, see :class:`EventType`.
        text: the next piece of text for deltas, the whole answer for ``agent_end``, else None.

    All other fields are properties. A convenience field is None when the type does not have
    it; :attr:`payload` always has everything, also of types that this package does not know.
    """

    __slots__ = ("type", "text", "_payload", "_meta")

    type: str
    text: str | None

    def __init__(self, type: str, text: str | None, payload: Any, meta: Any) -> None:
        self.type = type
        self.text = text
        self._payload = payload  # _UNSET: {"text": text}
        self._meta = meta  # a str is the inside of the object, not decoded yet

    @property
    def version(self) -> int:
        """Version of the envelope: 1."""
        return EVENT_ENVELOPE_V1_VERSION

    @property
    def event_type(self) -> str:
        """Another name of ``type``."""
        return self.type

    @property
    def payload(self) -> Any:
        """Everything the event carries, decoded; a dict for known types."""
        if self._payload is _UNSET:
            self._payload = {"text": self.text}
        return self._payload

    @property
    def metadata(self) -> dict[str, Any] | None:
        """``{run_id, session_id, sequence, timestamp_ms}``; None on frames that are not recorded."""
        if isinstance(self._meta, str):
            self._meta = _decode("{" + self._meta + "}")
        meta: dict[str, Any] | None = self._meta
        return meta

    @property
    def payload_json(self) -> str:
        """:attr:`payload` as JSON text."""
        return to_text(self.payload)

    @property
    def metadata_json(self) -> str | None:
        """:attr:`metadata` as JSON text, or None."""
        if isinstance(self._meta, str):
            return "{" + self._meta + "}"
        return None if self._meta is None else to_text(self._meta)

    @property
    def data(self) -> str | None:
        """The payload as JSON text for types without convenience fields, unknown ones included."""
        return None if self.type in _WITHOUT_DATA else self.payload_json

    def _field(self, name: str) -> Any:
        key = _FIELDS.get(self.type, _NONE).get(name)
        if key is None:
            return None
        payload = self.payload
        return payload.get(key) if isinstance(payload, dict) else None

    @property
    def tool_name(self) -> str | None:
        """Name of the tool, for tool, confirmation and permission events."""
        value: str | None = self._field("tool_name")
        return value

    @property
    def tool_id(self) -> str | None:
        """Id of the call, for tool, confirmation and permission events."""
        value: str | None = self._field("tool_id")
        return value

    @property
    def tool_output(self) -> str | None:
        """Output of the tool, for ``tool_end``."""
        value: str | None = self._field("tool_output")
        return value

    @property
    def exit_code(self) -> int | None:
        """Exit code of the tool, 0 for success, for ``tool_end``."""
        value: int | None = self._field("exit_code")
        return value

    @property
    def turn(self) -> int | None:
        """Number of the turn, for ``turn_start`` and ``turn_end``."""
        value: int | None = self._field("turn")
        return value

    @property
    def prompt(self) -> str | None:
        """The prompt, for ``agent_start`` and ``planning_start``."""
        value: str | None = self._field("prompt")
        return value

    @property
    def error(self) -> str | None:
        """What went wrong, for ``error``; :attr:`payload` has ``code`` and the rest."""
        value: str | None = self._field("error")
        return value

    @property
    def total_tokens(self) -> int | None:
        """Tokens used, for ``turn_end`` (that turn) and ``agent_end`` (the run)."""
        if self.type not in _WITH_USAGE or not isinstance(self.payload, dict):
            return None
        usage = self.payload.get("usage")
        return usage.get("total_tokens") if isinstance(usage, dict) else None

    @property
    def verification_summary_json(self) -> str | None:
        """The verification summary as JSON text, for ``agent_end``."""
        summary = self._field("verification_summary")
        return None if summary is None else to_text(summary)

    @property
    def verification_summary_text(self) -> str | None:
        """The verification summary in words, for ``agent_end``."""
        summary = self._field("verification_summary")
        return None if summary is None else format_verification_summary(summary)

    @property
    def error_kind(self) -> dict[str, Any] | None:
        """Why the tool failed, an object with a ``type``, for ``tool_end``; None if it gave no reason."""
        value: dict[str, Any] | None = self._field("error_kind")
        return value

    @property
    def error_kind_json(self) -> str | None:
        """:attr:`error_kind` as JSON text."""
        kind = self.error_kind
        return None if kind is None else to_text(kind)

    @property
    def run_id(self) -> str | None:
        """Id of the run, from the metadata."""
        meta = self.metadata
        return None if meta is None else meta.get("run_id")

    @property
    def sequence(self) -> int | None:
        """Number of the event in its run, from the metadata: starts at 0 and rises by exactly 1."""
        meta = self.metadata
        return None if meta is None else meta.get("sequence")

    def to_dict(self) -> dict[str, Any]:
        """The event as its envelope ``{version, type, payload, metadata?}``."""
        meta = self.metadata
        envelope = {"version": self.version, "type": self.type, "payload": self.payload}
        return envelope if meta is None else {**envelope, "metadata": meta}

    def __repr__(self) -> str:
        return f"AgentEvent({self.type}, {self.payload_json})"

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, AgentEvent) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.type, self.metadata_json))

    def __reduce__(self) -> tuple[Any, ...]:
        return event_from, (self.to_dict(),)


def format_verification_summary(summary: Mapping[str, Any] | str) -> str:
    """A verification summary (a dict, or its JSON text) in one line of words."""
    s = _decode(summary) if isinstance(summary, str) else summary
    if not isinstance(s, Mapping):
        raise bad_type(f"a verification summary is an object or its JSON text, not {type(s).__name__}", op="format_verification_summary")
    reports = s.get("report_count", 0)
    if not reports:
        return "no verification was run"
    parts = [f"{reports} report{'s' if reports != 1 else ''}", f"{s.get('required_check_count', 0)} required checks"]
    for key, words in (("pending_required_check_count", "pending"), ("failed_check_count", "failed"), ("residual_risk_count", "residual risks")):
        if s.get(key):
            parts.append(f"{s[key]} {words}")
    return f"verification {s.get('status', 'skipped')}: " + ", ".join(parts)


def event_from(envelope: Any) -> AgentEvent:
    """An event from its decoded envelope.

    Raises:
        CodeError: SERIALIZATION_ERROR if it is no envelope of version 1.
    """
    if not isinstance(envelope, dict) or envelope.get("version") != EVENT_ENVELOPE_V1_VERSION or not isinstance(envelope.get("type"), str):
        raise error_from({
            "code": "SERIALIZATION_ERROR", "kind": "invalid", "status": -1, "op": "event.decode",
            "message": f"Serialization error: not an event envelope of version {EVENT_ENVELOPE_V1_VERSION}: {str(envelope)[:200]!r}"})
    return _build(envelope["type"], envelope.get("payload"), envelope.get("metadata"))


def _build(type: str, payload: Any, meta: Any) -> AgentEvent:
    key = _FIELDS.get(type, _NONE).get("text")
    text = payload.get(key) if key is not None and isinstance(payload, dict) else None
    return AgentEvent(type, text, payload, meta)


_HEAD = '{"version":1,"type":"'
_SEAM = "}}," + _HEAD
_TEXT = 'text_delta","payload":{"text":"'
_REASON = 'reasoning_delta","payload":{"text":"'
_OUTPUT = 'tool_output_delta","payload":{"id":"'
_NTEXT, _NREASON, _NOUTPUT = len(_TEXT), len(_REASON), len(_OUTPUT)
_META = '},"metadata":{'
_TEXT_END = '"' + _META


def decode_batch(batch: str) -> list[AgentEvent]:
    """The events of one JSON array.

    Raises:
        CodeError: SERIALIZATION_ERROR for an envelope of another version.
    """
    if not batch.startswith("[" + _HEAD) or not batch.endswith("}}]"):
        return [event_from(e) for e in _decode(batch)] if batch else []
    events: list[AgentEvent] = []
    add, make, unset = events.append, AgentEvent, _UNSET
    try:
        for piece in batch[1 + len(_HEAD):-3].split(_SEAM):
            if piece.startswith(_TEXT):
                text, end, meta = piece.partition(_TEXT_END)
                text = text[_NTEXT:]
                if end and '"' not in text and "\\" not in text:
                    add(make("text_delta", text, unset, meta))
                    continue
            elif piece.startswith(_REASON):
                text, end, meta = piece.partition(_TEXT_END)
                text = text[_NREASON:]
                if end and '"' not in text and "\\" not in text:
                    add(make("reasoning_delta", text, unset, meta))
                    continue
            elif piece.startswith(_OUTPUT):
                event = _output(piece)
                if event is not None:
                    add(event)
                    continue
            add(_whole(piece))
    except ValueError:
        return [event_from(e) for e in _decode(batch)]
    return events


def _output(piece: str) -> AgentEvent | None:
    """A piece of a tool's output from slices; None if it has to be decoded."""
    payload, end, meta = piece[_NOUTPUT:].partition(_TEXT_END)
    id, _, rest = payload.partition('","name":"')
    name, named, delta = rest.partition('","delta":"')
    if not (end and named) or '"' in id or '"' in name or '"' in delta or "\\" in payload:
        return None
    return AgentEvent("tool_output_delta", delta, {"id": id, "name": name, "delta": delta}, meta)


def _whole(piece: str) -> AgentEvent:
    envelope = _decode(_HEAD + piece + "}}")
    return _build(envelope["type"], envelope.get("payload"), envelope.get("metadata"))

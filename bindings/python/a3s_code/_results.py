"""What a turn and a direct tool call give back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from ._wire import text as to_text


@dataclass(frozen=True)
class AgentResult:
    """The outcome of a turn. ``str(result)`` is its text.

    Attributes:
        text: the model's answer.
        tool_calls_count: tools that were called.
        prompt_tokens, completion_tokens, total_tokens: usage as the model service counted it.
        verification_status: ``passed``, ``failed``, ``needs_review`` or ``skipped``.
        pending_verification_count: required checks that are still open.
        failed_verification_count: checks that failed.
        verification_report_count: reports behind the summary.
        verification_summary_json: the summary as JSON text.
        verification_summary_text: the summary in words.
        run_id: id of the run, as in ``Session.runs()``.
    """

    text: str = ""
    tool_calls_count: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    verification_status: str = "skipped"
    pending_verification_count: int = 0
    failed_verification_count: int = 0
    verification_report_count: int = 0
    verification_summary_json: str = "{}"
    verification_summary_text: str = ""
    run_id: str = ""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def from_wire(cls, obj: Mapping[str, Any]) -> AgentResult:
        """The result from the object that the library gives; fields it does not know are ignored."""
        known = {name: obj[name] for name in cls.__dataclass_fields__ if name in obj}
        return cls(**known, verification_summary_json=to_text(obj.get("verification_summary") or {}))


@dataclass(frozen=True)
class ToolResult:
    """The outcome of a tool. A tool that fails is a result, not an exception.

    A tool of your own may return one too, to give an exit code or metadata.

    Attributes:
        name: name of the tool.
        output: its text.
        exit_code: 0 for success.
        metadata: what it says beside its text, or None.
        error_kind: why it failed, an object with a ``type`` such as ``"version_conflict"``, or None.
    """

    name: str = ""
    output: str = ""
    exit_code: int = 0
    metadata: dict[str, Any] | None = None
    error_kind: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the tool succeeded."""
        return self.exit_code == 0

    @property
    def metadata_json(self) -> str | None:
        """:attr:`metadata` as JSON text, or None."""
        return None if self.metadata is None else to_text(self.metadata)

    @property
    def error_kind_json(self) -> str | None:
        """:attr:`error_kind` as JSON text, or None."""
        return None if self.error_kind is None else to_text(self.error_kind)

    def __str__(self) -> str:
        return self.output

    @classmethod
    def from_wire(cls, obj: Mapping[str, Any]) -> ToolResult:
        """The result from the object that the library gives."""
        return cls(obj.get("name") or "", obj.get("output") or "", obj.get("exit_code") or 0, obj.get("metadata"), obj.get("error_kind"))

"""Options of a session: plain objects that become JSON when a session is opened.

Values are checked by the library, so that every language refuses the same things with the
same words. Checked here is only what JSON could not carry.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from ._errors import bad_type, bad_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _texts(name: str, value: Sequence[str] | None) -> list[str]:
    """A list of texts. A text alone would be a list of its letters: rules that match nothing."""
    if isinstance(value, (str, bytes)):
        raise bad_type(f"{name} must be a list of str, not {type(value).__name__}: write [{value!r}]", field=name.partition(".")[0])
    return list(value or [])


class PermissionPolicy:
    """Which tool calls run. Rules are ``Tool`` or ``Tool(pattern)``; deny > allow > ask > default.

    Args and attributes:
        allow, deny, ask: lists of rules; may be changed until the session is opened.
        default_decision: ``"allow"``, ``"deny"`` or ``"ask"`` for calls that no rule names;
            None is ``"ask"``. Anything else is a ``ValueError`` when a session is opened.
        enabled: False allows everything.
    """

    def __init__(
        self,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
        ask: Sequence[str] | None = None,
        default_decision: str | None = None,
        enabled: bool = True,
    ) -> None:
        self.allow = _texts("permission_policy.allow", allow)
        self.deny = _texts("permission_policy.deny", deny)
        self.ask = _texts("permission_policy.ask", ask)
        self.default_decision = "ask" if default_decision is None else default_decision
        self.enabled = enabled

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        lists = {name: _texts(f"permission_policy.{name}", getattr(self, name)) for name in ("allow", "deny", "ask")}
        return {**lists, "default_decision": self.default_decision, "enabled": self.enabled}


class ConfirmationPolicy:
    """How questions are asked before a call runs.

    Args and attributes:
        enabled: whether calls may wait for an answer; default False.
        default_timeout_ms: how long, in milliseconds; default 30000.
        timeout_action: ``"reject"`` (also for None) or ``"auto_approve"`` when nobody answers.
        yolo_lanes: lanes whose calls are approved without a question.
    """

    def __init__(
        self,
        enabled: bool = False,
        default_timeout_ms: int = 30_000,
        timeout_action: str | None = None,
        yolo_lanes: Sequence[str] | None = None,
    ) -> None:
        self.enabled = enabled
        self.default_timeout_ms = default_timeout_ms
        self.timeout_action = "reject" if timeout_action is None else timeout_action
        self.yolo_lanes = _texts("confirmation_policy.yolo_lanes", yolo_lanes)

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        wire: dict[str, Any] = {"enabled": self.enabled, "default_timeout_ms": self.default_timeout_ms, "timeout_action": self.timeout_action}
        return {**wire, "yolo_lanes": self.yolo_lanes} if self.yolo_lanes else wire


class ArtifactStoreLimits:
    """How much long output a session keeps beside its transcript; None keeps the default.

    Args and attributes:
        max_artifacts: number of artifacts.
        max_bytes: bytes of all of them together.
    """

    def __init__(self, max_artifacts: int | None = None, max_bytes: int | None = None) -> None:
        self.max_artifacts = max_artifacts
        self.max_bytes = max_bytes

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return _set({"max_artifacts": self.max_artifacts, "max_bytes": self.max_bytes})


class HostEnvConfig:
    """Fixes ids and time, so that a session gives the same records every time.

    Args and attributes:
        sequential_id_prefix: ids become ``<prefix>-0``, ``<prefix>-1``, ...; None makes random ids.
        fixed_time_ms: Unix milliseconds that every clock shows; None is the real time.
    """

    def __init__(self, sequential_id_prefix: str | None = None, fixed_time_ms: int | None = None) -> None:
        self.sequential_id_prefix = sequential_id_prefix
        self.fixed_time_ms = fixed_time_ms

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return _set({"sequential_id_prefix": self.sequential_id_prefix, "fixed_time_ms": self.fixed_time_ms})


class LocalWorkspaceBackend:
    """Files, shell and git of a folder of this machine.

    Args and attributes:
        root: the folder; a relative path is relative to the current folder when a session is opened.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"kind": "local", "root": _path(self.root)}


class HostWorkspaceBackend:
    """A workspace of this program. What ``Agent.register_workspace`` gives is one too.

    Args and attributes:
        name: what it is registered under.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"kind": "host", "name": self.name}


class HostSessionStore:
    """A session store of this program. What ``Agent.register_session_store`` gives is one too.

    Args and attributes:
        name: what it is registered under.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"kind": "host", "name": self.name}


class FileSessionStore:
    """Keeps sessions in files. The folder is made when a session is opened.

    Args and attributes:
        dir: the folder; a relative path is relative to the current folder when a session is opened.
    """

    def __init__(self, dir: str) -> None:
        self.dir = dir

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"kind": "file", "dir": _path(self.dir)}


class MemorySessionStore:
    """Keeps sessions in memory. Save and resume with the same object: it is the store."""

    def __init__(self) -> None:
        self.instance_id = os.urandom(16).hex()

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"kind": "memory", "instance_id": self.instance_id}


class SessionOptions:
    """What a session may do and how. Set attributes; what stays None keeps the default of the
    agent or the library. The object is read when a session is opened and may be used again.

    A name that is no option is an ``AttributeError``. Values are checked when the session is
    opened: a bad one is a ``ValueError`` or ``TypeError`` that is also a
    :class:`CodeError` with code SESSION_CONFIGURATION_ERROR and ``details["field"]``.

    Model and prompt:
        model (str): ``"provider/model"`` for this session.
        temperature (float), thinking_budget (int): count only together with ``model``.
        llm_logprobs (bool), llm_top_logprobs (int): token probabilities where the service has them.
        llm_api_timeout_ms (int): limit of one model call, in milliseconds; none by default.
        role, guidelines, response_style, extra (str): slots of the system prompt.

    Planning and limits:
        planning_mode (str): ``"auto"``, ``"enabled"`` or ``"disabled"``; wins over ``planning``.
        planning (bool): older form; None auto, True enabled, False disabled.
        goal_tracking (bool): default False.
        max_tool_rounds (int): tool rounds of one turn.
        max_parse_retries (int): malformed tool arguments in a row before the run fails; default 2.
        tool_timeout_ms (int): limit of one tool call, in milliseconds.
        circuit_breaker_threshold (int): model failures in a row before the run fails; default 3.
        duplicate_tool_call_threshold (int): equal calls in a row before the run fails; default 3.
        max_execution_time_ms (int): limit of a whole run, in milliseconds.
        continuation_enabled (bool), max_continuation_turns (int): follow-ups when the model stops early.
        auto_compact (bool): replace older turns by a summary when the window fills; default False.
        auto_compact_threshold (float): share of the window at which that happens; default 0.8.
        max_context_tokens (int): size of the window; 0 is a ``ValueError`` at assignment.
        artifact_store_limits (ArtifactStoreLimits).

    Tools and policy:
        permission_policy (PermissionPolicy), confirmation_policy (ConfirmationPolicy).
        skill_dirs, agent_dirs (list[str]), builtin_skills (bool),
        enforce_active_skill_tool_restrictions (bool).
        auto_parallel (bool), manual_delegation_enabled (bool), max_parallel_tasks (int, at least 1).

    Keeping and identity:
        workspace_backend (LocalWorkspaceBackend or HostWorkspaceBackend), session_store
        (FileSessionStore, MemorySessionStore or HostSessionStore), auto_save (bool): save after
        every turn; default False.
        journal (bool): with a store, keep every fact, so that an unsaved session resumes;
        default True. stall_timeout_ms (int): how long a run without a store waits for a slow
        reader, in milliseconds; default 60000.
        session_id (str): made by the library if unset.
        tenant_id, principal, agent_template_id, correlation_id (str): labels, kept and restored.
        host_env (HostEnvConfig), retention_limits (dict): ``max_runs_retained``,
        ``max_events_per_run``, ``max_event_bytes_per_run``, ``max_trace_events``,
        ``max_terminal_subagent_tasks``, ``unbounded``.

    Options of parts that this build does not have are refused by name when a session is opened.
    """

    model: str | None
    temperature: float | None
    thinking_budget: int | None
    llm_logprobs: bool | None
    llm_top_logprobs: int | None
    llm_api_timeout_ms: int | None
    role: str | None
    guidelines: str | None
    response_style: str | None
    extra: str | None
    planning_mode: str | None
    planning: bool | None
    goal_tracking: bool
    max_tool_rounds: int | None
    max_parse_retries: int | None
    tool_timeout_ms: int | None
    circuit_breaker_threshold: int | None
    duplicate_tool_call_threshold: int | None
    max_execution_time_ms: int | None
    continuation_enabled: bool | None
    max_continuation_turns: int | None
    auto_compact: bool
    auto_compact_threshold: float | None
    max_context_tokens: int | None
    artifact_store_limits: ArtifactStoreLimits | None
    trajectory_path: str | None
    trajectory_mode: str | None
    trajectory_max_text_bytes: int | None
    trajectory_include_messages: bool | None
    permission_policy: PermissionPolicy | None
    confirmation_policy: ConfirmationPolicy | None
    security_provider: object | None
    skill_dirs: list[str]
    builtin_skills: bool
    enforce_active_skill_tool_restrictions: bool | None
    agent_dirs: list[str]
    auto_delegation: Mapping[str, Any] | None
    auto_parallel: bool | None
    manual_delegation_enabled: bool | None
    max_parallel_tasks: int | None
    queue_config: Mapping[str, Any] | None
    budget_guard: object | None
    workspace_backend: LocalWorkspaceBackend | HostWorkspaceBackend | None
    remote_git: Mapping[str, Any] | None
    session_store: FileSessionStore | MemorySessionStore | HostSessionStore | None
    auto_save: bool
    journal: bool | None
    stall_timeout_ms: int | None
    session_id: str | None
    memory_store: object | None
    tenant_id: str | None
    principal: str | None
    agent_template_id: str | None
    correlation_id: str | None
    host_env: HostEnvConfig | None
    retention_limits: Mapping[str, Any] | None

    __slots__ = (
        "model", "temperature", "thinking_budget", "llm_logprobs", "llm_top_logprobs", "llm_api_timeout_ms",
        "role", "guidelines", "response_style", "extra", "planning_mode", "planning", "goal_tracking",
        "max_tool_rounds", "max_parse_retries", "tool_timeout_ms", "circuit_breaker_threshold",
        "duplicate_tool_call_threshold", "max_execution_time_ms", "continuation_enabled",
        "max_continuation_turns", "auto_compact", "auto_compact_threshold", "max_context_tokens",
        "artifact_store_limits", "trajectory_path", "trajectory_mode", "trajectory_max_text_bytes",
        "trajectory_include_messages", "permission_policy", "confirmation_policy", "security_provider",
        "skill_dirs", "builtin_skills", "enforce_active_skill_tool_restrictions", "agent_dirs",
        "auto_delegation", "auto_parallel", "manual_delegation_enabled", "max_parallel_tasks",
        "queue_config", "workspace_backend", "remote_git", "session_store", "auto_save", "journal",
        "stall_timeout_ms", "budget_guard", "session_id", "memory_store", "tenant_id", "principal",
        "agent_template_id", "correlation_id", "host_env", "retention_limits",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, [] if name in _LISTS else False if name in _FLAGS else None)

    if not TYPE_CHECKING:  # with it a type checker would take any name for an option

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "max_context_tokens" and value is not None and not isinstance(value, bool) and value == 0:
                raise bad_value("max_context_tokens must be greater than 0", field=name)
            if name == "max_parallel_tasks" and isinstance(value, int):
                value = max(1, value)
            try:
                object.__setattr__(self, name, value)
            except AttributeError:
                raise AttributeError(f"{name!r} is no session option{_guess(name)}") from None

    def copy(self) -> SessionOptions:
        """Another object with the same values; lists are copied too."""
        twin = SessionOptions()
        for name in self.__slots__:
            value = getattr(self, name)
            object.__setattr__(twin, name, list(value) if isinstance(value, list) else value)
        return twin

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads; unset options are left out.

        Raises:
            TypeError: an option holds an object of a wrong class.
        """
        wire: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None or value == [] and name in _LISTS or value is False and name in _FLAGS:
                continue
            wire[name] = _option(name, value)
        return wire

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={getattr(self, n)!r}" for n in self.__slots__ if getattr(self, n) not in (None, False, []))
        return f"SessionOptions({shown})"


_LISTS = frozenset({"skill_dirs", "agent_dirs"})
# False means "not asked for" with these, which is not the same as "off".
_FLAGS = frozenset({"goal_tracking", "auto_compact", "builtin_skills", "auto_save"})

_CLASSES: dict[str, tuple[tuple[Any, ...], str]] = {
    "workspace_backend": ((LocalWorkspaceBackend, HostWorkspaceBackend), "a LocalWorkspaceBackend or S3WorkspaceBackend instance"),
    "session_store": ((FileSessionStore, MemorySessionStore, HostSessionStore), "a FileSessionStore or MemorySessionStore instance"),
    "memory_store": ((), "a FileMemoryStore instance"),
    "security_provider": ((), "a DefaultSecurityProvider instance"),
    "permission_policy": ((PermissionPolicy,), "a PermissionPolicy instance"),
    "confirmation_policy": ((ConfirmationPolicy,), "a ConfirmationPolicy instance"),
    "artifact_store_limits": ((ArtifactStoreLimits,), "an ArtifactStoreLimits instance"),
    "host_env": ((HostEnvConfig,), "a HostEnvConfig instance"),
}


def _option(name: str, value: Any) -> Any:
    if name == "budget_guard":
        return True  # an object of this program; the library says whether it can be used
    if isinstance(value, float) and not math.isfinite(value):
        raise bad_value(f"{name} must be a finite number, not {value}", field=name)
    if name not in _CLASSES:
        return dict(value) if isinstance(value, Mapping) else value
    classes, words = _CLASSES[name]
    if not isinstance(value, classes):
        raise bad_type(f"{name} must be {words}", field=name)
    wire: Any = value.to_wire()
    return wire


def _set(fields: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if v is not None}


def _path(value: Any) -> Any:
    return value.__fspath__() if hasattr(value, "__fspath__") else value


def _guess(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, SessionOptions.__slots__, 1)
    return f"; did you mean {close[0]!r}?" if close else ""

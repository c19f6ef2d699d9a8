"""Options of a session: plain attributes that become JSON when a session is opened.

Values are checked by the library, so that every language refuses the same things with the
same words. Checked here is only what JSON could not carry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ._errors import bad_type, bad_value
from ._generated import SESSION_OPTION_NAMES
from ._values import (
    ArtifactStoreLimits, ConfirmationPolicy, FileSessionStore, HostEnvConfig, HostSessionStore,
    HostWorkspaceBackend, LocalWorkspaceBackend, MemorySessionStore, PermissionPolicy,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._unbuilt_values import (
        AutoDelegationConfig, DefaultSecurityProvider, FileMemoryStore, RemoteGitBackendConfig,
        S3WorkspaceBackend, SessionQueueConfig, WorkerAgentSpec,
    )


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
        skill_dirs, agent_dirs (list[str]), builtin_skills (bool), inline_skills, worker_agents,
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
    security_provider: DefaultSecurityProvider | None
    skill_dirs: list[str]
    builtin_skills: bool
    inline_skills: list[dict[str, str]]
    enforce_active_skill_tool_restrictions: bool | None
    agent_dirs: list[str]
    worker_agents: list[WorkerAgentSpec]
    auto_delegation: AutoDelegationConfig | Mapping[str, Any] | None
    auto_parallel: bool | None
    manual_delegation_enabled: bool | None
    max_parallel_tasks: int | None
    queue_config: SessionQueueConfig | Mapping[str, Any] | None
    budget_guard: object | None
    workspace_backend: LocalWorkspaceBackend | HostWorkspaceBackend | S3WorkspaceBackend | None
    remote_git: RemoteGitBackendConfig | None
    session_store: FileSessionStore | MemorySessionStore | HostSessionStore | None
    auto_save: bool
    journal: bool | None
    stall_timeout_ms: int | None
    session_id: str | None
    memory_store: FileMemoryStore | None
    tenant_id: str | None
    principal: str | None
    agent_template_id: str | None
    correlation_id: str | None
    host_env: HostEnvConfig | None
    retention_limits: Mapping[str, Any] | None

    # All of the library's, so that a new one needs no line here but its type above.
    __slots__ = tuple(name for name in SESSION_OPTION_NAMES if name != "search_config")

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

    def add_instruction(self, name: str, content: str) -> None:
        """Adds a skill that is an instruction: its name and its text, to ``inline_skills``."""
        self.inline_skills.append({"name": name, "kind": "instruction", "content": content})

    def add_persona(self, name: str, content: str) -> None:
        """Adds a skill that is a persona: its name and its text, to ``inline_skills``."""
        self.inline_skills.append({"name": name, "kind": "persona", "content": content})

    def add_worker_agent(self, spec: WorkerAgentSpec) -> None:
        """Adds an agent to ``worker_agents``."""
        self.worker_agents.append(spec)

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


_LISTS = frozenset({"skill_dirs", "agent_dirs", "inline_skills", "worker_agents"})
# False means "not asked for" with these, which is not the same as "off".
_FLAGS = frozenset({"goal_tracking", "auto_compact", "builtin_skills", "auto_save"})

# The classes of an option, and the words of its refusal. Values of parts that are not built are
# known by name: their module is loaded by programs that use it.
_CLASSES: dict[str, tuple[tuple[type, ...], str, str]] = {
    "workspace_backend": ((LocalWorkspaceBackend, HostWorkspaceBackend), "S3WorkspaceBackend", "a LocalWorkspaceBackend or S3WorkspaceBackend instance"),
    "session_store": ((FileSessionStore, MemorySessionStore, HostSessionStore), "", "a FileSessionStore or MemorySessionStore instance"),
    "memory_store": ((), "FileMemoryStore", "a FileMemoryStore instance"),
    "security_provider": ((), "DefaultSecurityProvider", "a DefaultSecurityProvider instance"),
    "remote_git": ((), "RemoteGitBackendConfig", "a RemoteGitBackendConfig instance"),
    "permission_policy": ((PermissionPolicy,), "", "a PermissionPolicy instance"),
    "confirmation_policy": ((ConfirmationPolicy,), "", "a ConfirmationPolicy instance"),
    "artifact_store_limits": ((ArtifactStoreLimits,), "", "an ArtifactStoreLimits instance"),
    "host_env": ((HostEnvConfig,), "", "a HostEnvConfig instance"),
}


def _option(name: str, value: Any) -> Any:
    if name == "budget_guard":
        return True  # an object of this program; the library says whether it can be used
    if isinstance(value, float) and not math.isfinite(value):
        raise bad_value(f"{name} must be a finite number, not {value}", field=name)
    if name in _CLASSES:
        classes, unbuilt, words = _CLASSES[name]
        if not isinstance(value, classes) and (not unbuilt or type(value).__name__ != unbuilt):
            raise bad_type(f"{name} must be {words}", field=name)
    return _plain(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_wire"):
        return value.to_wire()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return dict(value) if isinstance(value, Mapping) else value


def _guess(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, SessionOptions.__slots__, 1)
    return f"; did you mean {close[0]!r}?" if close else ""

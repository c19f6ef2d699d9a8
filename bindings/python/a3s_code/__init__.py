"""libA3S for Python: an embeddable coding-agent runtime.

::

    from a3s_code import Agent, EventType, PermissionPolicy, SessionOptions

    options = SessionOptions()
    options.permission_policy = PermissionPolicy(allow=["read*", "grep*"], default_decision="deny")

    with Agent.create("agent.acl") as agent, agent.session(".", options) as session:
        for event in session.stream("Where is the configuration parsed?"):
            if event.type == EventType.TEXT_DELTA:
                print(event.text, end="")

The native library is loaded at the first ``Agent.create``, not at import.
"""

from typing import TYPE_CHECKING, Any

from ._agent import Agent
from ._errors import (
    AlreadyExists, BudgetExhausted, Cancelled, CodeError, CodeErrorCode, ConfigError, Conflict,
    ContextError, Forked, Interrupted, InvalidHandle, InvalidRequest, LibraryError, LLMError,
    NotFound, SecurityError, SessionBusy, SessionClosed, SessionConfigurationError, SessionError,
    SessionInitializationError, StorageError, StoredDataError, TimedOut, ToolError, Unsupported,
)
from ._events import AgentEvent, agent_event_types_v1, event_envelope_v1_version, format_verification_summary
from ._generated import AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION, EventType
from ._generated import VERSION as __version__
from ._options import (
    ArtifactStoreLimits, ConfirmationPolicy, FileSessionStore, HostEnvConfig, LocalWorkspaceBackend,
    MemorySessionStore, PermissionPolicy, SessionOptions,
)
from ._session import Session
from ._stream import EventStream
from ._tools import ToolContext

if TYPE_CHECKING:
    from ._results import AgentResult, ToolResult
else:
    def __getattr__(name: str) -> Any:  # dataclasses cost as much to import as all the rest
        if name in ("AgentResult", "ToolResult"):
            from . import _results
            return getattr(_results, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

__all__ = [
    "AGENT_EVENT_TYPES_V1", "Agent", "AgentEvent", "AgentResult", "AlreadyExists", "ArtifactStoreLimits",
    "BudgetExhausted", "Cancelled", "CodeError", "CodeErrorCode", "ConfigError", "ConfirmationPolicy",
    "Conflict", "ContextError", "EVENT_ENVELOPE_V1_VERSION", "EventStream", "EventType",
    "FileSessionStore", "Forked", "HostEnvConfig", "Interrupted", "InvalidHandle", "InvalidRequest",
    "LLMError", "LibraryError", "LocalWorkspaceBackend", "MemorySessionStore", "NotFound",
    "PermissionPolicy", "SecurityError", "Session", "SessionBusy", "SessionClosed",
    "SessionConfigurationError", "SessionError", "SessionInitializationError", "SessionOptions",
    "StorageError", "StoredDataError", "TimedOut", "ToolContext", "ToolError", "ToolResult",
    "Unsupported", "__version__", "agent_event_types_v1", "event_envelope_v1_version",
    "format_verification_summary",
]

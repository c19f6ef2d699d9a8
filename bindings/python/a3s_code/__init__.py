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

from ._agent import Agent
from ._errors import (
    AlreadyExists, BudgetExhausted, Cancelled, CodeError, ConfigError, Conflict,
    ContextError, ExtensionError, Forked, Interrupted, InvalidHandle, InvalidRequest, LibraryError, LLMError,
    NotFound, SecurityError, SessionBusy, SessionClosed, SessionConfigurationError, SessionError,
    SessionInitializationError, StorageError, StoredDataError, TimedOut, ToolError, Unsupported,
)
from ._events import AgentEvent, agent_event_types_v1, event_envelope_v1_version, format_verification_summary
from ._generated import AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION, EventType
from ._generated import VERSION as __version__
from ._options import SessionOptions
from ._session import Session
from ._stream import EventStream
from ._values import (
    ArtifactStoreLimits, ConfirmationPolicy, FileSessionStore, HostEnvConfig, HostSessionStore,
    HostWorkspaceBackend, LocalWorkspaceBackend, MemorySessionStore, PermissionPolicy,
)

TYPE_CHECKING = False  # as typing has it, which takes as long to load as all that is loaded here
if TYPE_CHECKING:
    from ._context import Context, ToolContext
    from ._extensions import Registration, StoreRegistration, WorkspaceRegistration
    from ._protocols import (
        BlobSessionStore, CommandWorkspace, CompletionClient, ContextProvider, ExposingPermissionChecker,
        ModelClient, PermissionChecker, SearchWorkspace, SessionStore, Transport, Workspace,
    )
    from ._results import AgentResult, ToolResult
    from ._unbuilt_values import (
        AutoDelegationConfig, DefaultSecurityProvider, FileMemoryStore, RemoteGitBackendConfig,
        S3WorkspaceBackend, SessionQueueConfig, WorkerAgentSpec,
    )
    from .types import CodeErrorCode
else:
    _LATER = {
        "_context": ("Context", "ToolContext"),
        "_extensions": ("Registration", "StoreRegistration", "WorkspaceRegistration"),
        "_protocols": (
            "BlobSessionStore", "CommandWorkspace", "CompletionClient", "ContextProvider", "ExposingPermissionChecker",
            "ModelClient", "PermissionChecker", "SearchWorkspace", "SessionStore", "Transport", "Workspace",
        ),
        "_results": ("AgentResult", "ToolResult"),
        "_unbuilt_values": (
            "AutoDelegationConfig", "DefaultSecurityProvider", "FileMemoryStore", "RemoteGitBackendConfig",
            "S3WorkspaceBackend", "SessionQueueConfig", "WorkerAgentSpec",
        ),
        "types": ("CodeErrorCode",),
    }

    def __getattr__(name):  # what a program may not need costs as much to import as all the rest
        for module, names in _LATER.items():
            if name in names:
                from importlib import import_module
                return getattr(import_module("." + module, __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})

__all__ = [
    "AGENT_EVENT_TYPES_V1", "Agent", "AgentEvent", "AgentResult", "AlreadyExists", "ArtifactStoreLimits",
    "AutoDelegationConfig", "BlobSessionStore", "BudgetExhausted", "Cancelled", "CodeError",
    "CodeErrorCode", "CommandWorkspace", "CompletionClient", "ConfigError", "ConfirmationPolicy",
    "Conflict", "Context", "ContextError", "ContextProvider", "DefaultSecurityProvider",
    "EVENT_ENVELOPE_V1_VERSION", "EventStream", "EventType", "ExposingPermissionChecker", "ExtensionError",
    "FileMemoryStore", "FileSessionStore", "Forked", "HostEnvConfig", "HostSessionStore",
    "HostWorkspaceBackend", "Interrupted", "InvalidHandle", "InvalidRequest", "LLMError", "LibraryError",
    "LocalWorkspaceBackend", "MemorySessionStore", "ModelClient", "NotFound", "PermissionChecker",
    "PermissionPolicy", "Registration", "RemoteGitBackendConfig", "S3WorkspaceBackend", "SearchWorkspace",
    "SecurityError", "Session", "SessionBusy", "SessionClosed", "SessionConfigurationError", "SessionError",
    "SessionInitializationError", "SessionOptions", "SessionQueueConfig", "SessionStore", "StorageError",
    "StoreRegistration", "StoredDataError", "TimedOut", "ToolContext", "ToolError", "ToolResult",
    "Transport", "Unsupported", "WorkerAgentSpec", "Workspace", "WorkspaceRegistration", "__version__",
    "agent_event_types_v1", "event_envelope_v1_version", "format_verification_summary",
]

"""Values of session options: plain objects that become JSON when a session is opened."""

from __future__ import annotations

import os

from ._errors import bad_type
from ._live import Live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def set_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that are set."""
    return {k: v for k, v in fields.items() if v is not None}


def _path(value: Any) -> Any:
    return value.__fspath__() if hasattr(value, "__fspath__") else value


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
        return set_fields({"max_artifacts": self.max_artifacts, "max_bytes": self.max_bytes})


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
        return set_fields({"sequential_id_prefix": self.sequential_id_prefix, "fixed_time_ms": self.fixed_time_ms})


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


class MemorySessionStore(Live):
    """Keeps sessions in memory. Save and resume with the same object: it is the store."""

    def __init__(self) -> None:
        self.instance_id = os.urandom(16).hex()

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"kind": "memory", "instance_id": self.instance_id}

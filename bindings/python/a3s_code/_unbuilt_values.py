"""Values of parts that this version does not have. They can be made, and are refused by name when a
session is opened with them."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ._errors import bad_value
from ._values import set_fields


class S3WorkspaceBackend:
    """Files in a bucket. Not built: refused when a session is opened.

    Args and attributes:
        bucket, prefix: where the files are.
        access_key_id, secret_access_key, session_token: credentials.
        endpoint, region, force_path_style: the service; region default us-east-1.
        max_read_bytes: most bytes of a file that is read; default 10 MiB.
        search_enabled, max_objects_scanned, max_grep_bytes_per_object, search_concurrency: grep and glob.
    """

    def __init__(
        self, bucket: str, prefix: str, access_key_id: str, secret_access_key: str, endpoint: str | None = None,
        region: str | None = None, session_token: str | None = None, force_path_style: bool = False,
        max_read_bytes: int | None = None, search_enabled: bool = False, max_objects_scanned: int | None = None,
        max_grep_bytes_per_object: int | None = None, search_concurrency: int | None = None,
    ) -> None:
        self.bucket, self.prefix = bucket, prefix
        self.access_key_id, self.secret_access_key, self.session_token = access_key_id, secret_access_key, session_token
        self.endpoint, self.region, self.force_path_style = endpoint, region, force_path_style
        self.max_read_bytes, self.search_enabled = max_read_bytes, search_enabled
        self.max_objects_scanned, self.max_grep_bytes_per_object = max_objects_scanned, max_grep_bytes_per_object
        self.search_concurrency = search_concurrency

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads, without the credentials, which it would not use."""
        return {"kind": "s3"}


class RemoteGitBackendConfig:
    """Git over HTTP. Not built: refused when a session is opened.

    Args and attributes:
        base_url, repo_id: where the repository is.
        bearer_token, client_cert_pem, client_key_pem: credentials.
        request_timeout_ms: default 30000. max_diff_bytes: default 1 MiB. max_log_entries: default 200.
    """

    def __init__(
        self, base_url: str, repo_id: str, bearer_token: str | None = None, client_cert_pem: str | None = None,
        client_key_pem: str | None = None, request_timeout_ms: int | None = None,
        max_diff_bytes: int | None = None, max_log_entries: int | None = None,
    ) -> None:
        self.base_url, self.repo_id, self.bearer_token = base_url, repo_id, bearer_token
        self.client_cert_pem, self.client_key_pem = client_cert_pem, client_key_pem
        self.request_timeout_ms, self.max_diff_bytes, self.max_log_entries = request_timeout_ms, max_diff_bytes, max_log_entries

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads, without the credentials, which it would not use."""
        return {"base_url": self.base_url, "repo_id": self.repo_id}


class FileMemoryStore:
    """Long-term memory in files. Not built: refused when a session is opened.

    Args and attributes:
        dir: the folder.
    """

    def __init__(self, dir: str) -> None:
        self.dir = dir

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"dir": self.dir}


class DefaultSecurityProvider:
    """Taint tracking and sanitising of output. Not built: refused when a session is opened."""

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {}


class AutoDelegationConfig:
    """Delegation by the runtime. Not built: only ``enabled=False`` is accepted.

    Args and attributes:
        enabled: default False.
        auto_parallel: whether delegated tasks run beside each other; default True.
        min_confidence: from 0 to 1; default 0.72.
        max_tasks: at least 1; default 4.
    """

    def __init__(self, enabled: bool = False, auto_parallel: bool = True, min_confidence: float = 0.72, max_tasks: int = 4) -> None:
        self.enabled = enabled
        self.auto_parallel = auto_parallel
        self.min_confidence = min(1.0, max(0.0, min_confidence))
        self.max_tasks = max(1, max_tasks)

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return {"enabled": self.enabled} if not self.enabled else dict(vars(self))


class SessionQueueConfig:
    """The queue of a session. Not built: refused when a session is opened.

    Attributes:
        query_concurrency (4), execute_concurrency (2), generate_concurrency (1): workers of each lane.
        enable_dlq, dlq_max_size (1000): dead letters.
        enable_metrics, enable_alerts, enable_all_features: what is counted and told.
        timeout_ms: limit of one task in milliseconds.
        lane_handlers: ``{lane: {"mode", "timeout_ms"}}``.
    """

    def __init__(self) -> None:
        self.query_concurrency, self.execute_concurrency, self.generate_concurrency = 4, 2, 1
        self.enable_dlq, self.dlq_max_size = False, 1000
        self.enable_metrics = self.enable_alerts = self.enable_all_features = False
        self.timeout_ms: int | None = None
        self.lane_handlers: dict[str, Mapping[str, Any]] = {}

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return set_fields(vars(self))


class WorkerAgentSpec:
    """An agent given as data. Not built: refused when a session is opened.

    Args and attributes:
        name, description: must not be empty.
        kind: ``"read_only"``, ``"planner"``, ``"implementer"``, ``"verifier"``, ``"reviewer"`` or ``"custom"``.

    Attributes:
        hidden, permissions, model, prompt, max_steps: what it may do and how.
        confirmation_inheritance: ``"auto_approve"``, ``"deny_on_ask"`` or ``"inherit_parent"``.

    Raises:
        ValueError: the name or the description is empty.
    """

    def __init__(self, name: str, description: str, kind: str = "custom") -> None:
        if not name or not description:
            raise bad_value("a worker agent needs a name and a description", field="worker_agents")
        self.name, self.description, self.kind = name, description, kind
        self.hidden = False
        self.permissions: Sequence[str] | None = None
        self.model: str | None = None
        self.prompt: str | None = None
        self.max_steps: int | None = None
        self.confirmation_inheritance = "auto_approve"

    @classmethod
    def read_only(cls, name: str, description: str) -> WorkerAgentSpec:
        """An agent that reads."""
        return cls(name, description, "read_only")

    @classmethod
    def planner(cls, name: str, description: str) -> WorkerAgentSpec:
        """An agent that plans."""
        return cls(name, description, "planner")

    @classmethod
    def implementer(cls, name: str, description: str) -> WorkerAgentSpec:
        """An agent that changes files."""
        return cls(name, description, "implementer")

    @classmethod
    def verifier(cls, name: str, description: str) -> WorkerAgentSpec:
        """An agent that checks."""
        return cls(name, description, "verifier")

    @classmethod
    def reviewer(cls, name: str, description: str) -> WorkerAgentSpec:
        """An agent that reviews."""
        return cls(name, description, "reviewer")

    @classmethod
    def custom(cls, name: str, description: str) -> WorkerAgentSpec:
        """An agent of no certain kind."""
        return cls(name, description)

    def to_wire(self) -> dict[str, Any]:
        """The object that the library reads."""
        return set_fields(vars(self))

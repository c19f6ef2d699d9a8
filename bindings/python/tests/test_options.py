"""Options and what they become."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import a3s_code
from a3s_code import (
    Agent, ArtifactStoreLimits, CodeError, ConfirmationPolicy, FileSessionStore, HostEnvConfig, LocalWorkspaceBackend,
    MemorySessionStore, PermissionPolicy, SessionOptions,
)
from a3s_code._agent import _merge
from a3s_code.types import OPERATIONS, SESSION_OPTIONS


def test_unset_options_are_left_out() -> None:
    assert SessionOptions().to_wire() == {}


@pytest.mark.parametrize("name, value, wire", [
    ("planning_mode", "disabled", "disabled"),
    ("auto_compact", True, True),
    ("auto_compact", False, None),
    ("continuation_enabled", False, False),
    ("max_context_tokens", 128_000, 128_000),
    ("max_parallel_tasks", 0, 1),
    ("skill_dirs", ["a"], ["a"]),
    ("skill_dirs", [], None),
    ("retention_limits", {"max_runs_retained": 3}, {"max_runs_retained": 3}),
    ("permission_policy", PermissionPolicy(allow=["read*"], default_decision="deny"),
     {"allow": ["read*"], "deny": [], "ask": [], "default_decision": "deny", "enabled": True}),
    ("confirmation_policy", ConfirmationPolicy(enabled=True, default_timeout_ms=5, yolo_lanes=["query"]),
     {"enabled": True, "default_timeout_ms": 5, "timeout_action": "reject", "yolo_lanes": ["query"]}),
    ("artifact_store_limits", ArtifactStoreLimits(max_bytes=9), {"max_bytes": 9}),
    ("host_env", HostEnvConfig("id", 7), {"sequential_id_prefix": "id", "fixed_time_ms": 7}),
    ("workspace_backend", LocalWorkspaceBackend("/w"), {"kind": "local", "root": "/w"}),
    ("session_store", FileSessionStore("/s"), {"kind": "file", "dir": "/s"}),
    ("role", None, None),
])
def test_what_an_option_becomes(name: str, value: Any, wire: Any) -> None:
    options = SessionOptions()
    setattr(options, name, value)
    assert options.to_wire() == ({} if wire is None else {name: wire})


def test_a_memory_store_is_its_own_store() -> None:
    first, second = MemorySessionStore(), MemorySessionStore()
    assert first.to_wire() == first.to_wire() != second.to_wire()


def test_zero_context_tokens_are_refused_at_once() -> None:
    with pytest.raises(ValueError) as err:
        SessionOptions().max_context_tokens = 0
    assert isinstance(err.value, CodeError) and err.value.details["field"] == "max_context_tokens"


def test_an_unknown_option_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'plannig_mode' is no session option; did you mean 'planning_mode'?"):
        SessionOptions().plannig_mode = "auto"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name, words", [
    ("workspace_backend", "workspace_backend must be a LocalWorkspaceBackend or S3WorkspaceBackend instance"),
    ("session_store", "session_store must be a FileSessionStore or MemorySessionStore instance"),
    ("memory_store", "memory_store must be a FileMemoryStore instance"),
    ("security_provider", "security_provider must be a DefaultSecurityProvider instance"),
    ("permission_policy", "permission_policy must be a PermissionPolicy instance"),
])
def test_a_wrong_class_is_a_type_error(name: str, words: str) -> None:
    options = SessionOptions()
    setattr(options, name, "text")
    with pytest.raises(TypeError) as err:
        options.to_wire()
    assert (str(err.value), getattr(err.value, "code")) == (words, "SESSION_CONFIGURATION_ERROR")


def test_overrides_alone_are_options() -> None:
    merged = _merge(None, {"model": "a/b", "skill_dirs": ("x",)}, {"planning_mode": "disabled", "goal_tracking": False, "max_parse_retries": None})
    assert merged.to_wire() == {"model": "a/b", "skill_dirs": ["x"], "planning_mode": "disabled"}


def test_overrides_next_to_options() -> None:
    options = SessionOptions()
    options.model, options.planning_mode, options.goal_tracking = "kept/model", "enabled", True
    with pytest.warns(UserWarning, match="model is ignored next to options"):
        merged = _merge(options, {"model": "other/model"}, {"planning_mode": "disabled", "goal_tracking": False})
    assert merged.to_wire() == {"model": "kept/model", "planning_mode": "disabled", "goal_tracking": True}
    assert options.planning_mode == "enabled"


def test_every_override_is_an_option() -> None:
    names = [p.name for p in inspect.signature(Agent.session).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert len(names) == 16 and set(names) <= set(SessionOptions.__slots__)


def test_the_options_are_those_of_the_library() -> None:
    elsewhere = {"search_config"}  # not built, and no session option of the contract
    assert {o.name for o in SESSION_OPTIONS} - set(SessionOptions.__slots__) == elsewhere
    assert set(SessionOptions.__slots__) <= {o.name for o in SESSION_OPTIONS}
    assert set(SessionOptions.__annotations__) == set(SessionOptions.__slots__)


def test_the_operations_are_those_of_the_library() -> None:
    sources = "".join((Path(a3s_code.__file__).parent / f"_{name}.py").read_text() for name in ("agent", "session", "direct"))
    called = set(re.findall(r'b"((?:agent|session)\.\w+)"', sources))
    unused = {"agent.event_types"}  # a constant of this package
    assert {name for name, o in OPERATIONS.items() if o.on != "run"} - called == unused
    assert called <= set(OPERATIONS)


@pytest.mark.parametrize("make", [
    lambda: PermissionPolicy(deny="bash"), lambda: PermissionPolicy(allow=b"read"), lambda: ConfirmationPolicy(yolo_lanes="query")])  # type: ignore[arg-type]
def test_a_text_is_no_list_of_rules(make: Any) -> None:
    with pytest.raises(TypeError, match="must be a list of str") as err:
        make()
    assert getattr(err.value, "code") == "SESSION_CONFIGURATION_ERROR"


def test_numbers_that_are_none_are_named() -> None:
    options = SessionOptions()
    options.auto_compact_threshold = float("nan")
    with pytest.raises(ValueError, match="auto_compact_threshold") as err:
        options.to_wire()
    assert getattr(err.value, "details")["field"] == "auto_compact_threshold"

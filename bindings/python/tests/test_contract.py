"""The names of the contract, with their signatures and defaults: all of them are there, and what is
not built refuses by name."""

from __future__ import annotations

import inspect
from typing import Any, Iterator

import pytest

import a3s_code
from a3s_code import Agent, AgentEvent, CodeError, EventType, PermissionPolicy, Session, SessionOptions, Unsupported
from a3s_code._unbuilt import UnbuiltAgent, UnbuiltSession
from conftest import Place, opened

OVERRIDES = (
    "model builtin_skills skill_dirs agent_dirs queue_config planning_mode planning goal_tracking max_parse_retries tool_timeout_ms "
    "llm_api_timeout_ms circuit_breaker_threshold duplicate_tool_call_threshold max_parallel_tasks auto_parallel manual_delegation_enabled").split()

AGENT = f"""
create(config_source, *, env=None)
create_async(config_source, *, env=None)
session(workspace, options=None, *, {', '.join(name + '=None' for name in OVERRIDES)})
async session_async(workspace, options=None)
resume_session(session_id, options)
async resume_session_async(session_id, options)
async replace_session_async(current, options)
session_for_agent(workspace, agent_name, agent_dirs=None, options=None)
session_for_worker(workspace, worker, options=None)
list_sessions()
close_session(session_id)
close()
async close_async()
is_closed
refresh_mcp_tools()
disconnect_idle_mcp(idle_threshold_ms)
serve_agent_dir(dir, workspace, options=None)
"""

SESSION = """
send(prompt, history=None)
run(prompt, history=None)
async send_async(prompt, history=None)
stream(prompt, history=None)
send_request(request)
stream_request(request)
send_with_attachments(prompt, attachments, history=None)
stream_with_attachments(prompt, attachments, history=None)
resume_run(checkpoint_run_id)
history()
cancel()
async cancel_async()
close()
async close_async()
is_closed
save()
async save_async()
session_id
workspace
init_warning
tenant_id
principal
agent_template_id
correlation_id
runs()
async runs_async()
run_snapshot(run_id)
async run_snapshot_async(run_id)
run_events(run_id)
async run_events_async(run_id)
run_event_page(run_id, after_sequence=None, limit=256)
async run_event_page_async(run_id, after_sequence=None, limit=256)
current_run()
active_tools()
cancel_run(run_id)
subagent_task(task_id)
subagent_tasks()
pending_subagent_tasks()
cancel_subagent_task(task_id)
trace_events()
verification_reports()
record_verification_reports(reports)
verification_summary()
verification_summary_text()
verification_presets()
verify_commands(subject, commands)
get_artifact(uri)
tool(name, args=None)
read_file(path, offset=None, limit=None)
write_file(path, content)
ls(path=None)
edit_file(path, old, new, replace_all=False)
patch_file(path, diff)
bash(command)
glob(pattern)
grep(pattern)
git(command, *args, **params)
git_command(params)
web_search(params)
program(params)
task(params)
tasks(params)
delegate_task(agent, description, prompt, background=False, max_steps=None)
parallel_task(tasks)
tool_names()
tool_definitions()
add_mcp(config)
add_mcp_server_config(config)
add_mcp_server(name, transport='stdio', command=None, args=None, url=None, headers=None, env=None, timeout_ms=None)
remove_mcp(name)
remove_mcp_server(name)
mcps()
mcp_status()
add_skill(name, content, kind='instruction')
remove_skill(name)
skill_names()
register_agent_dir(path)
register_worker_agent(spec)
register_worker_agents(specs)
register_dynamic_workflow_runtime()
unregister_dynamic_tool(name)
register_hook(hook_id, event_type, matcher=None, config=None, handler=None)
unregister_hook(hook_id)
hook_count()
register_command(name, description, handler, usage=None, *, timeout_ms=None)
list_commands()
set_budget_guard(guard=None)
pending_confirmations()
confirm_tool_use(tool_id, approved, reason=None)
cancel_confirmations()
has_queue()
set_lane_handler(lane, config)
pending_external_tasks()
complete_external_task(task_id, result)
queue_stats()
queue_metrics()
dead_letters()
has_memory
remember_success(task, tools, result)
remember_failure(task, error, tools)
recall_similar(query, limit=5)
recall_by_tags(tags, limit=10)
memory_recent(limit=10)
memory_stats()
get_working()
clear_working()
get_short_term()
clear_short_term()
parallel(specs, budget_tokens=None)
parallel_resumable(specs, workflow_id)
pipeline(items, stages)
"""

VALUES = """
PermissionPolicy(allow=None, deny=None, ask=None, default_decision=None, enabled=True)
ConfirmationPolicy(enabled=False, default_timeout_ms=30000, timeout_action=None, yolo_lanes=None)
AutoDelegationConfig(enabled=False, auto_parallel=True, min_confidence=0.72, max_tasks=4)
WorkerAgentSpec(name, description, kind='custom')
ArtifactStoreLimits(max_artifacts=None, max_bytes=None)
HostEnvConfig(sequential_id_prefix=None, fixed_time_ms=None)
SessionQueueConfig()
SessionOptions()
LocalWorkspaceBackend(root)
S3WorkspaceBackend(bucket, prefix, access_key_id, secret_access_key, endpoint=None, region=None, session_token=None, \
force_path_style=False, max_read_bytes=None, search_enabled=False, max_objects_scanned=None, max_grep_bytes_per_object=None, search_concurrency=None)
RemoteGitBackendConfig(base_url, repo_id, bearer_token=None, client_cert_pem=None, client_key_pem=None, request_timeout_ms=None, \
max_diff_bytes=None, max_log_entries=None)
FileSessionStore(dir)
MemorySessionStore()
FileMemoryStore(dir)
DefaultSecurityProvider()
agent_event_types_v1()
event_envelope_v1_version()
format_verification_summary(summary)
"""

OPTIONS = """
model temperature thinking_budget llm_logprobs llm_top_logprobs llm_api_timeout_ms role guidelines response_style extra
planning_mode planning goal_tracking max_tool_rounds max_parse_retries tool_timeout_ms circuit_breaker_threshold
duplicate_tool_call_threshold max_execution_time_ms continuation_enabled max_continuation_turns auto_compact
auto_compact_threshold max_context_tokens artifact_store_limits trajectory_path trajectory_mode trajectory_max_text_bytes
trajectory_include_messages permission_policy confirmation_policy security_provider skill_dirs builtin_skills
add_instruction add_persona enforce_active_skill_tool_restrictions agent_dirs worker_agents add_worker_agent auto_delegation
auto_parallel manual_delegation_enabled max_parallel_tasks queue_config budget_guard workspace_backend remote_git session_store
auto_save session_id memory_store tenant_id principal agent_template_id correlation_id host_env retention_limits
"""

EVENT = """
version type event_type payload metadata payload_json metadata_json text tool_name tool_id tool_output exit_code turn prompt error
total_tokens verification_summary_json verification_summary_text error_kind_json error_kind data
"""

RESULTS = {
    "AgentResult": (
        "text tool_calls_count prompt_tokens completion_tokens total_tokens verification_status pending_verification_count "
        "failed_verification_count verification_report_count verification_summary_json verification_summary_text"),
    "ToolResult": "name output exit_code metadata metadata_json error_kind error_kind_json",
}


def said(cls: Any, name: str) -> str:
    """A member in the form of the tables."""
    member = inspect.getattr_static(cls, name)
    if isinstance(member, property):
        return name
    prefix = "async " if inspect.iscoroutinefunction(member) else ""
    return f"{prefix}{name}{bare(getattr(cls, name), not isinstance(member, classmethod))}"


def bare(fn: Any, method: bool = False) -> str:
    signature = inspect.signature(fn)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters[1:] if method else parameters, return_annotation=signature.empty))


def name_of(line: str) -> str:
    return line.removeprefix("async ").partition("(")[0]


@pytest.mark.parametrize("cls, line", [(cls, line) for cls, table in ((Agent, AGENT), (Session, SESSION)) for line in table.strip().split("\n")],
                         ids=lambda v: name_of(v) if isinstance(v, str) else v.__name__)
def test_a_member_is_there_as_documented(cls: type, line: str) -> None:
    assert said(cls, name_of(line)) == line


@pytest.mark.parametrize("line", VALUES.strip().split("\n"), ids=name_of)
def test_a_value_is_there_as_documented(line: str) -> None:
    assert name_of(line) in a3s_code.__all__
    assert name_of(line) + bare(getattr(a3s_code, name_of(line))) == line


def test_options_events_and_results_have_their_fields() -> None:
    assert not [name for name in OPTIONS.split() if not hasattr(SessionOptions(), name)]
    assert not [name for name in EVENT.split() if not hasattr(AgentEvent, name)]
    for cls, names in RESULTS.items():
        assert not [name for name in names.split() if not hasattr(getattr(a3s_code, cls)(), name)]
    assert EventType.values() == a3s_code.agent_event_types_v1() and EventType.START == "agent_start" and EventType.END == "agent_end"


def unbuilt() -> Iterator[tuple[type, str]]:
    for cls in (UnbuiltAgent, UnbuiltSession):
        for name, member in vars(cls).items():
            if not name.startswith("_") and name not in ("has_queue", "has_memory"):
                assert inspect.isfunction(member)
                yield cls, name


@pytest.mark.parametrize("cls, name", list(unbuilt()), ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_not_built_refuses_by_name(cls: type, name: str) -> None:
    method = getattr(cls, name)
    needed = [None for p in inspect.signature(method).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    with pytest.raises(Unsupported, match=rf"\.{name} is not built in this version") as err:
        answer = method(*needed)
        if inspect.iscoroutine(answer):
            answer.send(None)
    assert (err.value.code, err.value.kind, err.value.op.partition(".")[2]) == ("UNSUPPORTED_OPERATION", "unsupported", name)


def test_there_is_no_queue_and_no_memory(place: Place) -> None:
    session = place.session("say x")
    assert session.has_queue() is False and session.has_memory is False


UNBUILT_VALUES: dict[str, Any] = {
    "security_provider": lambda: a3s_code.DefaultSecurityProvider(),
    "memory_store": lambda: a3s_code.FileMemoryStore("memory"),
    "workspace_backend": lambda: a3s_code.S3WorkspaceBackend("bucket", "prefix", "key", "secret"),
    "remote_git": lambda: a3s_code.RemoteGitBackendConfig("http://127.0.0.1:9", "repo"),
    "queue_config": lambda: a3s_code.SessionQueueConfig(),
    "auto_delegation": lambda: a3s_code.AutoDelegationConfig(enabled=True),
    "worker_agents": lambda: [a3s_code.WorkerAgentSpec.planner("p", "plans")],
    "inline_skills": lambda: [{"name": "n", "kind": "persona", "content": "c"}],
    "budget_guard": lambda: object(),
}


@pytest.mark.parametrize("name", UNBUILT_VALUES)
def test_a_value_of_a_part_that_is_not_built_is_refused_by_name(place: Place, name: str) -> None:
    agent = place.agent("say x")
    with pytest.raises(CodeError, match="not built in this version") as err:
        opened(place, agent, **{name: UNBUILT_VALUES[name]()})
    assert (err.value.code, err.value.details["field"]) == ("SESSION_CONFIGURATION_ERROR", name)


def test_a_value_that_says_off_is_accepted(place: Place) -> None:
    assert opened(place, place.agent("say x"), auto_delegation=a3s_code.AutoDelegationConfig()).tool_names()


def test_values_keep_their_bounds() -> None:
    config = a3s_code.AutoDelegationConfig(min_confidence=7, max_tasks=0)
    assert (config.min_confidence, config.max_tasks) == (1.0, 1)
    with pytest.raises(ValueError, match="needs a name and a description"):
        a3s_code.WorkerAgentSpec("", "x")
    options = SessionOptions()
    options.add_instruction("a", "b")
    options.add_persona("c", "d")
    options.add_worker_agent(a3s_code.WorkerAgentSpec.verifier("v", "verifies"))
    wire = options.to_wire()
    assert wire["inline_skills"] == [{"name": "a", "kind": "instruction", "content": "b"}, {"name": "c", "kind": "persona", "content": "d"}]
    assert wire["worker_agents"][0] | {"name": "v", "kind": "verifier"} == wire["worker_agents"][0]
    assert PermissionPolicy().default_decision == "ask" and SessionOptions().to_wire() == {}

"""What the contract names and this version does not have: each name is here with its signature, and
refuses by name with UNSUPPORTED_OPERATION."""

from __future__ import annotations

from ._errors import CodeError, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Callable, Mapping, Sequence

    from ._options import SessionOptions
    from ._results import AgentResult, ToolResult
    from ._session import Session
    from ._stream import EventStream
    from ._unbuilt_values import WorkerAgentSpec


def _unbuilt(name: str) -> CodeError:
    return refuse("UNSUPPORTED_OPERATION", name, f"{name} is not built in this version")


class UnbuiltAgent:
    """The part of an agent that this version does not have."""

    async def replace_session_async(self, current: Session, options: SessionOptions) -> Session:
        """Opens a live session again under other options. Not built."""
        raise _unbuilt("Agent.replace_session_async")

    def session_for_agent(
        self, workspace: str | os.PathLike[str], agent_name: str, agent_dirs: Sequence[str] | None = None, options: SessionOptions | None = None,
    ) -> Session:
        """Opens a session for an agent of the given folders. Not built."""
        raise _unbuilt("Agent.session_for_agent")

    def session_for_worker(self, workspace: str | os.PathLike[str], worker: WorkerAgentSpec, options: SessionOptions | None = None) -> Session:
        """Opens a session for an agent that is given as data. Not built."""
        raise _unbuilt("Agent.session_for_worker")

    def refresh_mcp_tools(self) -> None:
        """Asks the MCP servers for their tools again. Not built."""
        raise _unbuilt("Agent.refresh_mcp_tools")

    def disconnect_idle_mcp(self, idle_threshold_ms: int) -> list[str]:
        """Leaves MCP servers that were idle for so many milliseconds. Not built."""
        raise _unbuilt("Agent.disconnect_idle_mcp")

    def serve_agent_dir(self, dir: str | os.PathLike[str], workspace: str | os.PathLike[str], options: SessionOptions | None = None) -> Any:
        """Serves the schedules of a folder. Not built."""
        raise _unbuilt("Agent.serve_agent_dir")


class UnbuiltSession:
    """The part of a session that this version does not have."""

    # --- conversation ---

    def send_with_attachments(
        self, prompt: str, attachments: Sequence[Mapping[str, Any]], history: Sequence[Mapping[str, Any]] | None = None,
    ) -> AgentResult:
        """Runs a prompt with images. Not built."""
        raise _unbuilt("Session.send_with_attachments")

    def stream_with_attachments(
        self, prompt: str, attachments: Sequence[Mapping[str, Any]], history: Sequence[Mapping[str, Any]] | None = None,
    ) -> EventStream:
        """Starts a run of a prompt with images. Not built."""
        raise _unbuilt("Session.stream_with_attachments")

    def resume_run(self, checkpoint_run_id: str) -> AgentResult:
        """Goes on with a run from its checkpoint. Not built."""
        raise _unbuilt("Session.resume_run")

    # --- delegated tasks ---

    def subagent_task(self, task_id: str) -> dict[str, Any] | None:
        """One delegated task. Not built."""
        raise _unbuilt("Session.subagent_task")

    def subagent_tasks(self) -> list[dict[str, Any]]:
        """All delegated tasks. Not built."""
        raise _unbuilt("Session.subagent_tasks")

    def pending_subagent_tasks(self) -> list[dict[str, Any]]:
        """The delegated tasks that run. Not built."""
        raise _unbuilt("Session.pending_subagent_tasks")

    def cancel_subagent_task(self, task_id: str) -> bool:
        """Stops a delegated task. Not built."""
        raise _unbuilt("Session.cancel_subagent_task")

    def task(self, params: Mapping[str, Any]) -> ToolResult:
        """Delegates a task. Not built."""
        raise _unbuilt("Session.task")

    def tasks(self, params: Sequence[Mapping[str, Any]]) -> ToolResult:
        """Delegates tasks. Not built."""
        raise _unbuilt("Session.tasks")

    def delegate_task(self, agent: str, description: str, prompt: str, background: bool = False, max_steps: int | None = None) -> ToolResult:
        """Delegates a task to an agent. Not built."""
        raise _unbuilt("Session.delegate_task")

    def parallel_task(self, tasks: Sequence[Mapping[str, Any]]) -> ToolResult:
        """Delegates tasks that run beside each other. Not built."""
        raise _unbuilt("Session.parallel_task")

    def parallel(self, specs: Sequence[Mapping[str, Any]], budget_tokens: int | None = None) -> Any:
        """Runs steps beside each other. Not built."""
        raise _unbuilt("Session.parallel")

    def parallel_resumable(self, specs: Sequence[Mapping[str, Any]], workflow_id: str) -> list[dict[str, Any]]:
        """Runs steps beside each other, and keeps those that succeeded. Not built."""
        raise _unbuilt("Session.parallel_resumable")

    def pipeline(self, items: Sequence[Any], stages: Sequence[Callable[[dict[str, Any]], Any]]) -> list[dict[str, Any]]:
        """Runs items through stages. Not built."""
        raise _unbuilt("Session.pipeline")

    # --- verification ---

    def verification_reports(self) -> list[dict[str, Any]]:
        """The verification reports. Not built."""
        raise _unbuilt("Session.verification_reports")

    def record_verification_reports(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Adds verification reports. Not built."""
        raise _unbuilt("Session.record_verification_reports")

    def verification_summary(self) -> dict[str, Any]:
        """The verification summary. Not built."""
        raise _unbuilt("Session.verification_summary")

    def verification_summary_text(self) -> str:
        """The verification summary in words. Not built."""
        raise _unbuilt("Session.verification_summary_text")

    def verification_presets(self) -> list[dict[str, Any]]:
        """The commands that fit the workspace. Not built."""
        raise _unbuilt("Session.verification_presets")

    def verify_commands(self, subject: str, commands: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Runs commands that verify something. Not built."""
        raise _unbuilt("Session.verify_commands")

    # --- tools ---

    def patch_file(self, path: str, diff: str) -> ToolResult:
        """Changes a file by a diff. Not built."""
        raise _unbuilt("Session.patch_file")

    def git(self, command: str | Mapping[str, Any], *args: Any, **params: Any) -> ToolResult:
        """Runs git. Not built."""
        raise _unbuilt("Session.git")

    def git_command(self, params: Mapping[str, Any]) -> ToolResult:
        """Runs git. Not built."""
        raise _unbuilt("Session.git_command")

    def web_search(self, params: Mapping[str, Any]) -> ToolResult:
        """Searches the web. Not built."""
        raise _unbuilt("Session.web_search")

    def program(self, params: Mapping[str, Any]) -> ToolResult:
        """Runs a script in a sandbox. Not built."""
        raise _unbuilt("Session.program")

    # --- MCP servers ---

    def add_mcp(self, config: Mapping[str, Any]) -> int:
        """Adds an MCP server. Not built."""
        raise _unbuilt("Session.add_mcp")

    def add_mcp_server_config(self, config: Mapping[str, Any]) -> int:
        """Adds an MCP server. Not built."""
        raise _unbuilt("Session.add_mcp_server_config")

    def add_mcp_server(
        self, name: str, transport: str = "stdio", command: str | None = None, args: Sequence[str] | None = None, url: str | None = None, headers: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None, timeout_ms: int | None = None,
    ) -> int:
        """Adds an MCP server and gives the number of its tools. Not built."""
        raise _unbuilt("Session.add_mcp_server")

    def remove_mcp(self, name: str) -> bool:
        """Removes an MCP server. Not built."""
        raise _unbuilt("Session.remove_mcp")

    def remove_mcp_server(self, name: str) -> bool:
        """Removes an MCP server. Not built."""
        raise _unbuilt("Session.remove_mcp_server")

    def mcps(self) -> dict[str, dict[str, Any]]:
        """What each MCP server is up to. Not built."""
        raise _unbuilt("Session.mcps")

    def mcp_status(self) -> dict[str, dict[str, Any]]:
        """What each MCP server is up to. Not built."""
        raise _unbuilt("Session.mcp_status")

    # --- skills, agents, hooks ---

    def add_skill(self, name: str, content: str, kind: str = "instruction") -> None:
        """Adds a skill. Not built."""
        raise _unbuilt("Session.add_skill")

    def remove_skill(self, name: str) -> bool:
        """Removes a skill. Not built."""
        raise _unbuilt("Session.remove_skill")

    def skill_names(self) -> list[str]:
        """The names of the skills. Not built."""
        raise _unbuilt("Session.skill_names")

    def register_agent_dir(self, path: str | os.PathLike[str]) -> int:
        """Adds the agents of a folder. Not built."""
        raise _unbuilt("Session.register_agent_dir")

    def register_worker_agent(self, spec: WorkerAgentSpec) -> None:
        """Adds an agent that is given as data. Not built."""
        raise _unbuilt("Session.register_worker_agent")

    def register_worker_agents(self, specs: Sequence[WorkerAgentSpec]) -> None:
        """Adds agents that are given as data. Not built."""
        raise _unbuilt("Session.register_worker_agents")

    def register_dynamic_workflow_runtime(self) -> None:
        """Lets the model write workflows. Not built."""
        raise _unbuilt("Session.register_dynamic_workflow_runtime")

    def unregister_dynamic_tool(self, name: str) -> bool:
        """Removes a tool that was made at run time. Not built."""
        raise _unbuilt("Session.unregister_dynamic_tool")

    def register_hook(
        self, hook_id: str, event_type: str, matcher: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None, handler: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        """Has something called at an event. Not built."""
        raise _unbuilt("Session.register_hook")

    def unregister_hook(self, hook_id: str) -> bool:
        """Removes a hook. Not built."""
        raise _unbuilt("Session.unregister_hook")

    def hook_count(self) -> int:
        """How many hooks there are. Not built."""
        raise _unbuilt("Session.hook_count")

    def set_budget_guard(self, guard: object | None = None) -> None:
        """Has what is spent judged by this program. Not built."""
        raise _unbuilt("Session.set_budget_guard")

    # --- queue ---

    def set_lane_handler(self, lane: str, config: Mapping[str, Any]) -> None:
        """Says who runs what is in a lane. Not built."""
        raise _unbuilt("Session.set_lane_handler")

    def pending_external_tasks(self) -> list[dict[str, Any]]:
        """The tasks that wait for this program. Not built."""
        raise _unbuilt("Session.pending_external_tasks")

    def complete_external_task(self, task_id: str, result: Mapping[str, Any]) -> bool:
        """Hands in what a task gave. Not built."""
        raise _unbuilt("Session.complete_external_task")

    def queue_stats(self) -> dict[str, Any]:
        """What is in the queue. Not built."""
        raise _unbuilt("Session.queue_stats")

    def queue_metrics(self) -> dict[str, Any] | None:
        """What the queue has measured. Not built."""
        raise _unbuilt("Session.queue_metrics")

    def dead_letters(self) -> list[dict[str, Any]]:
        """What the queue gave up. Not built."""
        raise _unbuilt("Session.dead_letters")

    # --- memory ---

    def remember_success(self, task: str, tools: Sequence[str], result: str) -> None:
        """Keeps that something worked. Not built."""
        raise _unbuilt("Session.remember_success")

    def remember_failure(self, task: str, error: str, tools: Sequence[str]) -> None:
        """Keeps that something did not work. Not built."""
        raise _unbuilt("Session.remember_failure")

    def recall_similar(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """What is like the words. Not built."""
        raise _unbuilt("Session.recall_similar")

    def recall_by_tags(self, tags: Sequence[str], limit: int = 10) -> list[dict[str, Any]]:
        """What has the tags. Not built."""
        raise _unbuilt("Session.recall_by_tags")

    def memory_recent(self, limit: int = 10) -> list[dict[str, Any]]:
        """What was kept last. Not built."""
        raise _unbuilt("Session.memory_recent")

    def memory_stats(self) -> dict[str, Any]:
        """How much is kept. Not built."""
        raise _unbuilt("Session.memory_stats")

    def get_working(self) -> list[dict[str, Any]]:
        """The working memory. Not built."""
        raise _unbuilt("Session.get_working")

    def clear_working(self) -> None:
        """Empties the working memory. Not built."""
        raise _unbuilt("Session.clear_working")

    def get_short_term(self) -> list[dict[str, Any]]:
        """The short-term memory. Not built."""
        raise _unbuilt("Session.get_short_term")

    def clear_short_term(self) -> None:
        """Empties the short-term memory. Not built."""
        raise _unbuilt("Session.clear_short_term")

    # --- whether there is one ---

    def has_queue(self) -> bool:
        """Whether the session has a queue: False, there is none in this version."""
        return False

    @property
    def has_memory(self) -> bool:
        """Whether the session has a long-term memory: False, there is none in this version."""
        return False

//! What the contract names and this version of the runtime does not have: each name is here with
//! its signature, and refuses by name with UNSUPPORTED_OPERATION.

use std::path::Path;

use serde_json::Value;

use crate::agent::Agent;
use crate::call::Call;
use crate::codes;
use crate::error::CodeError;
use crate::message::Message;
use crate::options::SessionOptions;
use crate::results::AgentResult;
use crate::run::RunHandle;
use crate::session::AgentSession;
use crate::stream::EventReceiver;
use crate::ToolResult;

/// Makes methods that refuse.
macro_rules! unbuilt {
    ($owner:ident, $prefix:literal: $($doc:literal fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        /// Not built in this version: each of these fails with UNSUPPORTED_OPERATION.
        impl $owner {
            $(#[doc = concat!($doc, " Not built: fails with UNSUPPORTED_OPERATION.")]
            pub fn $name(&self, $($arg: $type),*) -> Call<$out> {
                let _ = ($($arg,)*);
                refused(concat!($prefix, stringify!($name)))
            })*
        }
    };
}

fn refused<T: Send + 'static>(name: &'static str) -> Call<T> {
    Call::now(move || Err(CodeError::new(codes::UNSUPPORTED_OPERATION, name, format!("{name} is not built in this version"))))
}

unbuilt! { Agent, "agent.":
    "Opens a live session again under other options." fn replace_session_async(current: &AgentSession, options: SessionOptions) -> AgentSession;
    "Opens a session for an agent of the given folders." fn session_for_agent_async(workspace: &Path, agent: &str, agent_dirs: &[&Path], options: SessionOptions) -> AgentSession;
    "Opens a session for an agent that is given as data." fn session_for_worker_async(workspace: &Path, worker: Value, options: SessionOptions) -> AgentSession;
    "Asks the MCP servers for their tools again." fn refresh_mcp_tools() -> ();
    "Leaves MCP servers that were idle for so many milliseconds." fn disconnect_idle_mcp(idle_threshold_ms: u64) -> Vec<String>;
    "Serves the schedules of a folder." fn serve_agent_dir(dir: &Path, workspace: &Path, options: SessionOptions) -> ();
}

unbuilt! { AgentSession, "session.":
    "Runs a prompt with images." fn send_with_attachments(prompt: &str, attachments: Vec<Value>, history: Option<&[Message]>) -> AgentResult;
    "Starts a run of a prompt with images." fn stream_with_attachments(prompt: &str, attachments: Vec<Value>, history: Option<&[Message]>) -> (EventReceiver, RunHandle);
    "Goes on with a run from its checkpoint." fn resume_run(checkpoint_run_id: &str) -> AgentResult;
    "Cancels the active run and waits for its end." fn cancel_and_settle(grace_ms: u64, abort_grace_ms: u64) -> bool;
    "One delegated task." fn subagent_task(task_id: &str) -> Option<Value>;
    "All delegated tasks." fn subagent_tasks() -> Vec<Value>;
    "The delegated tasks that run." fn pending_subagent_tasks() -> Vec<Value>;
    "Stops a delegated task." fn cancel_subagent_task(task_id: &str) -> bool;
    "Delegates a task." fn task(params: Value) -> ToolResult;
    "Delegates tasks." fn tasks(params: Vec<Value>) -> ToolResult;
    "Delegates a task to an agent." fn delegate_task(agent: &str, description: &str, prompt: &str, background: bool, max_steps: Option<u64>) -> ToolResult;
    "Delegates tasks that run beside each other." fn parallel_task(tasks: Vec<Value>) -> ToolResult;
    "Runs steps beside each other." fn parallel(specs: Vec<Value>, budget_tokens: Option<u64>) -> Value;
    "Runs steps beside each other, and keeps those that succeeded." fn parallel_resumable(specs: Vec<Value>, workflow_id: &str) -> Vec<Value>;
    "The verification reports." fn verification_reports() -> Vec<Value>;
    "Adds verification reports." fn record_verification_reports(reports: Vec<Value>) -> ();
    "The verification summary." fn verification_summary() -> crate::VerificationSummary;
    "The verification summary in words." fn verification_summary_text() -> String;
    "The commands that fit the workspace." fn verification_presets() -> Vec<Value>;
    "Runs commands that verify something." fn verify_commands(subject: &str, commands: Vec<Value>) -> Value;
    "Changes a file by a unified diff." fn patch_file(path: &str, diff: &str) -> ToolResult;
    "Runs git." fn git(command: &str, args: &[&str]) -> ToolResult;
    "Runs git." fn git_command(params: Value) -> ToolResult;
    "Searches the web." fn web_search(params: Value) -> ToolResult;
    "Runs a script in a sandbox." fn program(params: Value) -> ToolResult;
    "Adds an MCP server and gives the number of its tools." fn add_mcp(config: Value) -> u64;
    "Removes an MCP server." fn remove_mcp(name: &str) -> bool;
    "What each MCP server is up to." fn mcp_status() -> Value;
    "Adds a skill." fn add_skill(name: &str, content: &str, kind: &str) -> ();
    "Removes a skill." fn remove_skill(name: &str) -> bool;
    "The names of the skills." fn skill_names() -> Vec<String>;
    "Adds the agents of a folder." fn register_agent_dir(path: &Path) -> u64;
    "Adds an agent that is given as data." fn register_worker_agent(spec: Value) -> ();
    "Adds agents that are given as data." fn register_worker_agents(specs: Vec<Value>) -> ();
    "Lets the model write workflows." fn register_dynamic_workflow_runtime() -> ();
    "Removes a tool that was made at run time." fn unregister_dynamic_tool(name: &str) -> bool;
    "Has something called at an event." fn register_hook(hook_id: &str, event_type: &str, matcher: Value, config: Value) -> ();
    "Removes a hook." fn unregister_hook(hook_id: &str) -> bool;
    "How many hooks there are." fn hook_count() -> u64;
    "Says who runs what is in a lane." fn set_lane_handler(lane: &str, config: Value) -> ();
    "The tasks that wait for this program." fn pending_external_tasks() -> Vec<Value>;
    "Hands in what a task gave." fn complete_external_task(task_id: &str, result: Value) -> bool;
    "What is in the queue." fn queue_stats() -> Value;
    "What the queue has measured." fn queue_metrics() -> Option<Value>;
    "What the queue gave up." fn dead_letters() -> Vec<Value>;
    "Keeps that something worked." fn remember_success(task: &str, tools: &[&str], result: &str) -> ();
    "Keeps that something did not work." fn remember_failure(task: &str, error: &str, tools: &[&str]) -> ();
    "What is like the words." fn recall_similar(query: &str, limit: usize) -> Vec<Value>;
    "What has the tags." fn recall_by_tags(tags: &[&str], limit: usize) -> Vec<Value>;
    "What was kept last." fn memory_recent(limit: usize) -> Vec<Value>;
    "How much is kept." fn memory_stats() -> Value;
    "The working memory." fn get_working() -> Vec<Value>;
    "Empties the working memory." fn clear_working() -> ();
    "The short-term memory." fn get_short_term() -> Vec<Value>;
    "Empties the short-term memory." fn clear_short_term() -> ();
}

impl AgentSession {
    /// Whether the session has a queue: false, there is none in this version.
    pub fn has_queue(&self) -> bool {
        false
    }

    /// Whether the session has a long-term memory: false, there is none in this version.
    pub fn has_memory(&self) -> bool {
        false
    }
}

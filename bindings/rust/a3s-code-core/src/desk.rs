//! The tools that one agent's library may ask for, and the calls of them that are under way.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::Value;

use crate::error::Result;
use crate::ffi::{self, Handle};
use crate::sync::{block_on, lock, Once};
use crate::tool::{CallState, Outcome, Running, Tool, ToolContext, ToolFailure, ToolOutput};
use crate::wire;

/// Tools and calls of one agent. Methods may be called from any thread.
pub(crate) struct Desk {
    agent: Handle,
    tools: Mutex<Vec<Registered>>,
    open: Mutex<HashMap<u64, Arc<CallState>>>,
}

struct Registered {
    owner: Handle,
    scope: String, // the session's id; empty for an agent
    registration: Handle,
    tool: Arc<Entry>,
}

struct Entry {
    tool: Tool,
    runs_in: Runner,
}

enum Runner {
    Thread,
    #[cfg(feature = "tokio")]
    Tokio(tokio::runtime::Handle),
}

impl Runner {
    fn for_tool(tool: &Tool) -> Self {
        if tool.blocks {
            return Self::Thread;
        }
        #[cfg(feature = "tokio")]
        if let Ok(handle) = tokio::runtime::Handle::try_current() {
            return Self::Tokio(handle);
        }
        Self::Thread
    }
}

/// A `host_request` frame.
#[derive(Deserialize)]
pub(crate) struct HostRequest {
    request: u64,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    deadline_ms: u64,
    #[serde(default)]
    params: Params,
}

#[derive(Deserialize, Default)]
struct Params {
    args: Option<Box<RawValue>>,
    #[serde(default)]
    call_id: String,
}

impl Desk {
    pub(crate) fn new(agent: Handle) -> Arc<Self> {
        Arc::new(Self { agent, tools: Mutex::default(), open: Mutex::default() })
    }

    /// Makes a tool known to the library. `scope` is the session's id, or empty.
    pub(crate) fn register(&self, owner: Handle, scope: &str, tool: Tool) -> Result<()> {
        #[derive(Serialize)]
        struct Spec<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            read_only: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            timeout_ms: Option<u64>,
        }
        let spec = Spec {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            read_only: tool.read_only,
            timeout_ms: tool.timeout_ms,
        };
        let spec = wire::encode("host.register", &spec)?;
        // Held over the registration: a request for the tool may be heard before this thread goes on.
        let mut tools = lock(&self.tools);
        let registration = ffi::host_register(owner, c"tool", &spec)?;
        let runs_in = Runner::for_tool(&tool);
        tools.push(Registered { owner, scope: scope.to_owned(), registration, tool: Arc::new(Entry { tool, runs_in }) });
        Ok(())
    }

    /// Withdraws a tool; false if there is none.
    pub(crate) fn unregister(&self, owner: Handle, name: &str) -> bool {
        let gone = {
            let mut tools = lock(&self.tools);
            let at = tools.iter().position(|r| r.owner == owner && r.tool.tool.name == name);
            at.map(|at| tools.remove(at))
        };
        let Some(gone) = gone else { return false };
        ffi::close_quietly(gone.registration, 1000);
        true
    }

    /// Lets go of all tools of an agent or a session that has ended.
    pub(crate) fn forget(&self, owner: Handle) {
        // What a tool captured is dropped outside of the lock: it may be a session.
        let gone: Vec<Registered> = {
            let mut tools = lock(&self.tools);
            let (gone, kept) = std::mem::take(&mut *tools).into_iter().partition(|r| r.owner == owner);
            *tools = kept;
            gone
        };
        drop(gone);
    }

    /// Cancels what is under way.
    pub(crate) fn end(&self) {
        let open: Vec<Arc<CallState>> = lock(&self.open).drain().map(|(_, call)| call).collect();
        open.iter().for_each(|call| call.cancelled.happen("the agent is closed"));
        let gone = std::mem::take(&mut *lock(&self.tools));
        drop(gone);
    }

    /// The call is withdrawn.
    pub(crate) fn cancel(&self, request: u64, reason: &str) {
        let call = lock(&self.open).remove(&request);
        if let Some(call) = call {
            call.cancelled.happen(if reason.is_empty() { "cancelled" } else { reason });
        }
    }

    /// Lets the tool that is asked for begin.
    pub(crate) fn begin(self: &Arc<Self>, request: HostRequest) {
        let answer = Answer { desk: Arc::clone(self), request: request.request, given: false };
        let Some(entry) = self.find(&request.session_id, &request.name).filter(|_| request.kind == "tool") else {
            let message = format!("{} {:?} is no longer there", request.kind, request.name);
            return answer.give(Err(ToolFailure::new("NotRegistered", message)));
        };
        let call = Arc::new(CallState {
            agent: self.agent,
            request: request.request,
            tool_name: request.name,
            call_id: request.params.call_id,
            session_id: request.session_id,
            deadline: (request.deadline_ms > 0).then(|| Instant::now() + Duration::from_millis(request.deadline_ms)),
            cancelled: Once::default(),
        });
        lock(&self.open).insert(request.request, Arc::clone(&call));
        entry.run(request.params.args, ToolContext(call), answer);
    }

    /// A session's own tool, its agent's, or, for a child session, that of its parent.
    fn find(&self, session: &str, name: &str) -> Option<Arc<Entry>> {
        let tools = lock(&self.tools);
        let named = || tools.iter().filter(|r| r.tool.tool.name == name);
        let found = named().find(|r| r.scope == session).or_else(|| named().find(|r| r.scope.is_empty())).or_else(|| named().next());
        found.map(|r| Arc::clone(&r.tool))
    }
}

impl Entry {
    fn run(self: Arc<Self>, args: Option<Box<RawValue>>, context: ToolContext, answer: Answer) {
        // The function itself is called inside, so that it panics there and on that thread.
        let entry = Arc::clone(&self);
        let work = Caught(Box::pin(async move { (entry.tool.run)(args.as_deref(), context).await }));
        let work = async move { answer.give(work.await) };
        match &self.runs_in {
            #[cfg(feature = "tokio")]
            Runner::Tokio(handle) => {
                handle.spawn(work);
            }
            Runner::Thread => {
                // If there is no thread, the answer goes with the work and says so.
                let _ = thread::Builder::new().name("a3s-tool".to_owned()).spawn(move || block_on(work));
            }
        }
    }
}

/// The one answer to a request. Dropped without one, it says that.
struct Answer {
    desk: Arc<Desk>,
    request: u64,
    given: bool,
}

impl Answer {
    fn give(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Outcome) {
        #[derive(Serialize)]
        #[serde(rename_all = "snake_case")]
        enum Reply<'a> {
            Result(&'a ToolOutput),
            Error {
                #[serde(rename = "type")]
                kind: &'a str,
                message: &'a str,
            },
        }
        self.given = true;
        lock(&self.desk.open).remove(&self.request);
        let reply = match &outcome {
            Ok(output) => Reply::Result(output),
            Err(failure) => Reply::Error { kind: &failure.kind, message: &failure.message },
        };
        let Ok(reply) = serde_json::to_vec(&reply) else { return };
        // A late answer is dropped by the library, as it should be; one that it refuses is told to the model.
        if let Err(err) = ffi::host_reply(self.desk.agent, self.request, &reply) {
            let error = Reply::Error { kind: err.code(), message: err.message() };
            if let Ok(reply) = serde_json::to_vec(&error) {
                let _ = ffi::host_reply(self.desk.agent, self.request, &reply);
            }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.given {
            self.send(Err(ToolFailure::new("Dropped", "the tool was dropped before it answered")));
        }
    }
}

/// A future whose panic is a failure.
struct Caught(Running);

impl Future for Caught {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // After a panic the future is not polled again.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(ToolFailure::new("Panic", words(&*panic)))),
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the tool panicked").to_owned()
}

//! A configuration with its models; it opens sessions.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::builder::{cwd, AgentBuilder};
use crate::call::{Call, On, Request, Step};
use crate::control::Control;
use crate::error::Result;
use crate::ffi::{self, Handle};
use crate::generated::operations::{self as ops, Operation};
use crate::options::{SessionOptions, SessionStore};
use crate::session::AgentSession;
use crate::wire;
use crate::AgentInfo;

/// A configuration that was read, with the models, tools and stores it names. Its sessions share
/// it. Clones are the same agent.
///
/// The last clone that is dropped, sessions, streams and waiting calls included, closes it; that
/// waits at most a second. Close it yourself with [`close`](Self::close) to be sure of the end.
#[derive(Clone)]
pub struct Agent(pub(crate) Arc<AgentInner>);

pub(crate) struct AgentInner {
    pub(crate) handle: Handle,
    pub(crate) control: Arc<Control>,
}

/// How long dropping an agent or a session waits for its end, in milliseconds. What takes longer
/// goes on in the background.
pub(crate) const DROP_MS: i32 = 1000;

impl AgentInner {
    pub(crate) fn drop_memory_store(&self, instance_id: &str) {
        let params = serde_json::json!({ "instance_id": instance_id }).to_string();
        // Nobody can reach the store any more; if its agent cannot be reached either, it is gone.
        let _ = ffi::call(self.handle, ops::AGENT_DROP_MEMORY_STORE.name, params.as_bytes());
    }
}

impl Drop for AgentInner {
    fn drop(&mut self) {
        self.control.end();
        ffi::close_quietly(self.handle, DROP_MS);
    }
}

impl Agent {
    /// Opens an agent: `source` is ACL text, or the path of a file, a line that ends in `.acl`.
    /// Loads the native library if this is the first.
    ///
    /// The configuration and the tools' processes see the environment of this process as it is
    /// now, and relative paths are relative to the folder that is current now; see
    /// [`builder`](Self::builder) for other ways.
    ///
    /// # Errors
    /// CONFIG_ERROR with file, line and column in the details; LIBRARY_NOT_FOUND; ABI_MISMATCH.
    #[allow(clippy::new_ret_no_self)] // opening takes time
    pub fn new(source: impl Into<String>) -> Call<Self> {
        Self::builder(source).open()
    }

    /// As [`new`](Self::new), for the path of a file, whatever it looks like.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_file(path: impl Into<PathBuf>) -> Call<Self> {
        AgentBuilder::of_file(path.into()).open()
    }

    /// Another name of [`new`](Self::new).
    pub fn create(source: impl Into<String>) -> Call<Self> {
        Self::new(source)
    }

    /// [`new`](Self::new), blocking this thread.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn open(source: impl Into<String>) -> Result<Self> {
        Self::new(source).wait()
    }

    /// An agent that is opened with more to say than its configuration.
    pub fn builder(source: impl Into<String>) -> AgentBuilder {
        AgentBuilder::of(source.into())
    }

    /// Starts the construction of a session in a folder; relative to the folder that is current
    /// when it is built.
    pub fn session_builder(&self, workspace: impl Into<PathBuf>) -> SessionBuilder {
        SessionBuilder { agent: self.clone(), workspace: workspace.into(), options: SessionOptions::default() }
    }

    /// Opens a session. No model is called and nothing is saved.
    ///
    /// # Errors
    /// SESSION_CONFIGURATION_ERROR for a bad workspace or option, SESSION_CLOSED, SESSION_BUSY for
    /// an id that another session holds.
    pub fn session_async(&self, workspace: impl Into<PathBuf>, options: Option<SessionOptions>) -> Call<AgentSession> {
        self.session_builder(workspace).options(options.unwrap_or_default()).build()
    }

    /// [`session_async`](Self::session_async), blocking this thread.
    ///
    /// # Errors
    /// As [`session_async`](Self::session_async).
    pub fn session(&self, workspace: impl Into<PathBuf>, options: Option<SessionOptions>) -> Result<AgentSession> {
        self.session_async(workspace, options).wait()
    }

    /// Opens a kept session again. Nothing is executed: what was under way when its process died
    /// is told as interrupted. The options must carry its store, unless the configuration does.
    ///
    /// # Errors
    /// SESSION_ERROR if there is no such session or its snapshot is damaged, SESSION_BUSY if it is
    /// open elsewhere.
    pub fn resume_session_async(&self, session_id: &str, options: SessionOptions) -> Call<AgentSession> {
        self.open_session(None, Some(session_id), options)
    }

    /// [`resume_session_async`](Self::resume_session_async), blocking this thread.
    ///
    /// # Errors
    /// As [`resume_session_async`](Self::resume_session_async).
    pub fn resume_session(&self, session_id: &str, options: SessionOptions) -> Result<AgentSession> {
        self.resume_session_async(session_id, options).wait()
    }

    /// Ids of the sessions that are open, sorted.
    pub fn list_sessions(&self) -> Call<Vec<String>> {
        self.call(ops::AGENT_LIST_SESSIONS, &Map::new(), session_ids)
    }

    /// Ids of the sessions kept in a store, open or not, sorted; None is the store of the
    /// configuration.
    pub fn list_stored_sessions(&self, store: Option<SessionStore>) -> Call<Vec<String>> {
        #[derive(Serialize)]
        struct Params {
            #[serde(skip_serializing_if = "Option::is_none")]
            session_store: Option<SessionStore>,
            cwd: String,
        }
        let request = cwd("agent.list_stored_sessions")
            .and_then(|cwd| self.request(ops::AGENT_LIST_STORED_SESSIONS, &Params { session_store: store, cwd }));
        Call::operation(request, session_ids)
    }

    /// Closes one session by its id; false if it is not open.
    pub fn close_session(&self, session_id: &str) -> Call<bool> {
        self.call(ops::AGENT_CLOSE_SESSION, &serde_json::json!({ "session_id": session_id }), |b| wire::field(b, "closed"))
    }

    /// Closes every session and the agent. Saves nothing. May be called twice. Each step is
    /// bounded, all together by about 10 seconds. Afterwards nothing can be opened or sent; the
    /// records of its sessions stay readable.
    pub fn close(&self) -> Call<()> {
        let agent = Arc::clone(&self.0);
        Call::steps(self.request(ops::AGENT_CLOSE, &Map::new()), move |result| {
            agent.control.desk.end();
            Step::Done(result.map(drop))
        })
    }

    /// Whether the agent is closed, and the warnings of its configuration.
    pub fn info(&self) -> Call<AgentInfo> {
        self.call(ops::AGENT_INFO, &Map::new(), wire::decode)
    }

    /// Whether the agent is closed, as far as anybody can tell.
    pub fn is_closed(&self) -> bool {
        self.info().wait().map_or(true, |info| info.closed)
    }

    fn request<P: Serialize + ?Sized>(&self, operation: Operation, params: &P) -> Result<Request> {
        let params = wire::encode(&operation.name.to_string_lossy(), params)?;
        Ok(Request { on: On::Agent(Arc::clone(&self.0)), operation, params })
    }

    fn call<T: Send + 'static, P: Serialize + ?Sized>(&self, operation: Operation, params: &P, decode: fn(&[u8]) -> Result<T>) -> Call<T> {
        Call::operation(self.request(operation, params), decode)
    }

    fn open_session(&self, workspace: Option<PathBuf>, resume: Option<&str>, options: SessionOptions) -> Call<AgentSession> {
        #[derive(Serialize)]
        struct SessionOpen<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            workspace: Option<PathBuf>,
            #[serde(skip_serializing_if = "Option::is_none")]
            resume: Option<&'a str>,
            cwd: String,
            options: Map<String, Value>,
        }
        const OP: &str = "session.open";
        let spec = cwd(OP).and_then(|cwd| wire::encode(OP, &SessionOpen { workspace, resume, cwd, options: options.to_wire()? }));
        let agent = Arc::clone(&self.0);
        Call::thread(move || {
            let store = options.memory().cloned();
            if let Some(store) = &store {
                store.used_by(&agent);
            }
            AgentSession::open(agent, &spec?, store)
        })
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

fn session_ids(json: &[u8]) -> Result<Vec<String>> {
    wire::list(json, "session_ids")
}

/// A session under construction. See [`Agent::session_builder`].
#[derive(Debug, Clone)]
#[must_use = "nothing happens before this is built"]
pub struct SessionBuilder {
    agent: Agent,
    workspace: PathBuf,
    options: SessionOptions,
}

impl SessionBuilder {
    /// Sets the session's options.
    pub fn options(mut self, options: SessionOptions) -> Self {
        self.options = options;
        self
    }

    /// Opens the session.
    ///
    /// # Errors
    /// As [`Agent::session_async`].
    pub fn build(self) -> Call<AgentSession> {
        self.agent.open_session(Some(self.workspace), None, self.options)
    }

    /// [`build`](Self::build), blocking this thread.
    ///
    /// # Errors
    /// As [`Agent::session_async`].
    pub fn build_blocking(self) -> Result<AgentSession> {
        self.build().wait()
    }
}

//! A conversation in a workspace.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{json, Map, Value};

use crate::agent::{AgentInner, DROP_MS};
use crate::call::{Call, On, Request, Step};
use crate::decode;
use crate::error::Result;
use crate::event::EventEnvelope;
use crate::ffi::{self, Handle};
use crate::generated::operations::{self as ops, Operation};
use crate::message::Message;
use crate::options::MemorySessionStore;
use crate::results::{AgentResult, RunEventPage};
use crate::run::RunHandle;
use crate::stream::EventReceiver;
use crate::wire;
use crate::{ActiveTool, CommandInfo, PendingConfirmation, RunSnapshot, SessionInfo, ToolArtifact, ToolDefinition, TraceEvent};

/// A conversation in a workspace, under a policy. Made by
/// [`Agent::session_builder`](crate::Agent::session_builder).
///
/// It runs one prompt at a time: a second one meanwhile is SESSION_BUSY, never queued. Every
/// method may be called from any thread. Clones are the same session. The last one that is
/// dropped, streams and waiting calls included, closes it, waiting at most a second; neither that
/// nor [`close`](Self::close) saves. After closing the records stay readable, and everything else
/// is SESSION_CLOSED.
#[derive(Clone)]
pub struct AgentSession(pub(crate) Arc<SessionInner>);

pub(crate) struct SessionInner {
    pub(crate) handle: Handle,
    pub(crate) agent: Arc<AgentInner>,
    info: SessionInfo,
    /// A store in memory lives as long as somebody can reach it.
    _store: Option<MemorySessionStore>,
}

impl Drop for SessionInner {
    fn drop(&mut self) {
        ffi::close_quietly(self.handle, DROP_MS);
        self.agent.control.desk.forget(self.handle);
    }
}

impl AgentSession {
    /// Opens or resumes; blocks.
    pub(crate) fn open(agent: Arc<AgentInner>, spec: &[u8], store: Option<MemorySessionStore>) -> Result<Self> {
        let handle = ffi::session_open(agent.handle, spec)?;
        let mut inner = SessionInner { handle, agent, info: SessionInfo::default(), _store: store };
        inner.info = wire::decode(&ffi::call(handle, ops::SESSION_INFO.name, b"{}")?)?;
        Ok(Self(Arc::new(inner)))
    }

    // --- identity ---

    /// Id of the session, for [`Agent::resume_session`](crate::Agent::resume_session).
    pub fn session_id(&self) -> &str {
        &self.0.info.session_id
    }

    /// The workspace's root as an absolute path.
    pub fn workspace(&self) -> &str {
        &self.0.info.workspace
    }

    /// What went less well when the session was opened.
    pub fn init_warning(&self) -> Option<&str> {
        self.0.info.init_warning.as_deref()
    }

    /// The label given in the options, or restored.
    pub fn tenant_id(&self) -> Option<&str> {
        self.0.info.tenant_id.as_deref()
    }

    /// The label given in the options, or restored.
    pub fn principal(&self) -> Option<&str> {
        self.0.info.principal.as_deref()
    }

    /// The label given in the options, or restored.
    pub fn agent_template_id(&self) -> Option<&str> {
        self.0.info.agent_template_id.as_deref()
    }

    /// The label given in the options, or restored.
    pub fn correlation_id(&self) -> Option<&str> {
        self.0.info.correlation_id.as_deref()
    }

    /// What the session is now.
    pub fn info(&self) -> Call<SessionInfo> {
        self.call(ops::SESSION_INFO, &none(), wire::decode)
    }

    /// Whether the session or its agent is closed, as far as anybody can tell.
    pub fn is_closed(&self) -> bool {
        self.info().wait().map_or(true, |info| info.closed)
    }

    // --- conversation ---

    /// Runs a prompt and waits for the answer. `history`, if given, is the whole context of this
    /// call, which then leaves the session's own transcript as it is. Dropping the call cancels
    /// the run.
    ///
    /// # Errors
    /// SESSION_BUSY or SESSION_CLOSED at once; later what the run failed with, such as LLM_ERROR,
    /// CONTEXT_ERROR or CANCELLED.
    pub fn send(&self, prompt: &str, history: Option<&[Message]>) -> Call<AgentResult> {
        self.call(ops::SESSION_SEND, &RunStart { prompt, history }, wire::decode)
    }

    /// Another name of [`send`](Self::send).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn run(&self, prompt: &str, history: Option<&[Message]>) -> Call<AgentResult> {
        self.send(prompt, history)
    }

    /// [`send`](Self::send) with an object: `{"prompt", "history"?}`.
    ///
    /// # Errors
    /// As [`send`](Self::send); INVALID_REQUEST names what the object may not have.
    pub fn send_request(&self, request: &Value) -> Call<AgentResult> {
        self.call(ops::SESSION_SEND, request, wire::decode)
    }

    /// [`stream`](Self::stream) with an object: `{"prompt", "history"?}`.
    ///
    /// # Errors
    /// As [`stream`](Self::stream); INVALID_REQUEST names what the object may not have.
    pub fn stream_request(&self, request: &Value) -> Call<(EventReceiver, RunHandle)> {
        self.start(request)
    }

    /// Starts a run and gives its events, and a handle of the run; does not wait. Arguments as in
    /// [`send`](Self::send).
    ///
    /// Dropping either, or both, leaves the run: it goes on and holds the session. Cancel it with
    /// [`RunHandle::cancel`] or [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// SESSION_BUSY, SESSION_CLOSED, INVALID_REQUEST. What goes wrong later is the run's
    /// [`Error`](crate::AgentEvent::Error) event.
    pub fn stream(&self, prompt: &str, history: Option<&[Message]>) -> Call<(EventReceiver, RunHandle)> {
        self.start(&RunStart { prompt, history })
    }

    /// The session's own events from now on: those of its runs, and what concerns the session
    /// itself, such as `persistence_failed`. They end with the session.
    ///
    /// # Errors
    /// SESSION_CLOSED.
    pub fn events(&self) -> Result<EventReceiver> {
        EventReceiver::of_session(&self.0)
    }

    /// The transcript.
    pub fn history(&self) -> Call<Vec<Message>> {
        self.call(ops::SESSION_HISTORY, &none(), |b| wire::list(b, "messages"))
    }

    /// Asks the active run to stop and returns at once. False if there is none, or it was asked
    /// before. The run ends with one error event with code CANCELLED; a waiting
    /// [`send`](Self::send) fails with it.
    pub fn cancel(&self) -> Call<bool> {
        self.call(ops::SESSION_CANCEL, &none(), |b| wire::field(b, "cancelled"))
    }

    /// Asks one run to stop; true only if it is the active one.
    pub fn cancel_run(&self, run_id: &str) -> Call<bool> {
        self.call(ops::SESSION_CANCEL_RUN, &json!({ "run_id": run_id }), |b| wire::field(b, "cancelled"))
    }

    /// Writes one snapshot of the session to its store, all or nothing. Without a store it does
    /// nothing.
    ///
    /// # Errors
    /// SESSION_ERROR.
    pub fn save(&self) -> Call<()> {
        self.call(ops::SESSION_SAVE, &none(), |_| Ok(()))
    }

    /// Ends the session: cancels its run, rejects its questions, ends its processes, lets go of
    /// its tools. Bounded by about 10 seconds. Does not save. May be called twice.
    pub fn close(&self) -> Call<()> {
        let session = Arc::clone(&self.0);
        Call::steps(self.request(ops::SESSION_CLOSE, &none()), move |result| {
            session.agent.control.desk.forget(session.handle);
            Step::Done(result.map(drop))
        })
    }

    // --- runs ---

    /// Snapshots of the runs that are kept, oldest first.
    pub fn runs(&self) -> Call<Vec<RunSnapshot>> {
        self.call(ops::SESSION_RUNS, &none(), |b| wire::list(b, "runs"))
    }

    /// The snapshot of one run; None if it is unknown.
    pub fn run_snapshot(&self, run_id: &str) -> Call<Option<RunSnapshot>> {
        self.call(ops::SESSION_RUN_SNAPSHOT, &json!({ "run_id": run_id }), |b| wire::field(b, "run"))
    }

    /// The recorded events of a run that are kept; empty if it is unknown.
    pub fn run_events(&self, run_id: &str) -> Call<Vec<EventEnvelope>> {
        #[derive(Deserialize)]
        struct Events<'a> {
            #[serde(borrow, deserialize_with = "wire::or_default")]
            events: Vec<&'a RawValue>,
        }
        self.call(ops::SESSION_RUN_EVENTS, &json!({ "run_id": run_id }), |b| decode::list(&wire::borrowed::<Events<'_>>(b)?.events))
    }

    /// A part of a run's kept events: at most `limit` behind `after_sequence`, or from the first
    /// one; None if the run is unknown.
    pub fn run_event_page(&self, run_id: &str, after_sequence: Option<i64>, limit: usize) -> Call<Option<RunEventPage>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut params = json!({ "run_id": run_id, "limit": limit });
        if let Some(after) = after_sequence {
            params["after_sequence"] = after.into();
        }
        self.call(ops::SESSION_RUN_EVENT_PAGE, &params, RunEventPage::decode)
    }

    /// The snapshot of the active run; None if there is none.
    pub fn current_run(&self) -> Call<Option<RunSnapshot>> {
        self.call(ops::SESSION_CURRENT_RUN, &none(), |b| wire::field(b, "run"))
    }

    /// The tool calls that run now, oldest first.
    pub fn active_tools(&self) -> Call<Vec<ActiveTool>> {
        self.call(ops::SESSION_ACTIVE_TOOLS, &none(), |b| wire::list(b, "tools"))
    }

    /// One record for each tool execution, oldest first.
    pub fn trace_events(&self) -> Call<Vec<TraceEvent>> {
        self.call(ops::SESSION_TRACE_EVENTS, &none(), |b| wire::list(b, "events"))
    }

    /// A long output that was kept beside the transcript, by its URI; None if there is none.
    pub fn get_artifact(&self, uri: &str) -> Call<Option<ToolArtifact>> {
        self.call(ops::SESSION_GET_ARTIFACT, &json!({ "uri": uri }), |b| wire::field(b, "artifact"))
    }

    // --- questions ---

    /// The calls that wait for an answer.
    pub fn pending_confirmations(&self) -> Call<Vec<PendingConfirmation>> {
        self.call(ops::SESSION_PENDING_CONFIRMATIONS, &none(), |b| wire::list(b, "pending"))
    }

    /// Answers a [`ConfirmationRequired`](crate::AgentEvent::ConfirmationRequired) event, from any
    /// thread; `reason` is seen by the model with a refusal. False if no such question is open:
    /// unknown, answered, timed out or withdrawn.
    pub fn confirm_tool_use(&self, tool_id: &str, approved: bool, reason: Option<&str>) -> Call<bool> {
        let mut params = json!({ "tool_id": tool_id, "approved": approved });
        if let Some(reason) = reason {
            params["reason"] = reason.into();
        }
        self.call(ops::SESSION_CONFIRM_TOOL_USE, &params, |b| wire::field(b, "found"))
    }

    /// Rejects all open questions and gives their number.
    pub fn cancel_confirmations(&self) -> Call<usize> {
        self.call(ops::SESSION_CANCEL_CONFIRMATIONS, &none(), |b| wire::field(b, "count"))
    }

    // --- tools ---

    /// Names of the session's tools, sorted.
    pub fn tool_names(&self) -> Call<Vec<String>> {
        self.call(ops::SESSION_TOOL_NAMES, &none(), |b| wire::list(b, "names"))
    }

    /// The tools as the model sees them, sorted by name.
    pub fn tool_definitions(&self) -> Call<Vec<ToolDefinition>> {
        self.call(ops::SESSION_TOOL_DEFINITIONS, &none(), |b| wire::list(b, "tools"))
    }

    /// The slash commands, sorted by name.
    pub fn list_commands(&self) -> Call<Vec<CommandInfo>> {
        self.call(ops::SESSION_LIST_COMMANDS, &none(), |b| wire::list(b, "commands"))
    }

    // --- inside ---

    fn start<R: Serialize>(&self, request: &R) -> Call<(EventReceiver, RunHandle)> {
        let request = wire::encode("run.start", request);
        let session = Arc::clone(&self.0);
        Call::now(move || {
            let run = RunHandle::start(session, &request?)?;
            Ok((EventReceiver::of_run(&run)?, run))
        })
    }

    pub(crate) fn request<P: Serialize + ?Sized>(&self, operation: Operation, params: &P) -> Result<Request> {
        let params = wire::encode(&operation.name.to_string_lossy(), params)?;
        Ok(Request { on: On::Session(Arc::clone(&self.0)), operation, params })
    }

    pub(crate) fn call<T: Send + 'static, P: Serialize + ?Sized>(
        &self,
        operation: Operation,
        params: &P,
        decode: fn(&[u8]) -> Result<T>,
    ) -> Call<T> {
        Call::operation(self.request(operation, params), decode)
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession").field("session_id", &self.session_id()).field("workspace", &self.workspace()).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct RunStart<'a> {
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a [Message]>,
}

fn none() -> Map<String, Value> {
    Map::new()
}

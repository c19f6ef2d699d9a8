//! What one agent's library may ask this program for, and the requests that are under way.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::Value;

use crate::context::{Context, Request};
use crate::error::{CodeError, Result};
use crate::extension::{Caught, Handler, Handlers, Outcome, Params, Registration};
use crate::failure::ExtensionError;
use crate::ffi::{self, Handle};
use crate::sync::{block_on, lock, Once};
use crate::{wire, workers};

/// Extensions and requests of one agent. Methods may be called from any thread.
pub(crate) struct Desk {
    agent: Handle,
    extensions: Mutex<Vec<Registered>>,
    open: Mutex<HashMap<u64, Arc<Request>>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// How long taking back waits for what is under way, in milliseconds.
const CLOSE_MS: i32 = 1000;

pub(crate) struct Registered {
    pub(crate) id: u64,
    pub(crate) owner: Handle,
    handle: Handle, // 0 while it is being registered
    pub(crate) kind: String,
    pub(crate) name: String,
    scope: String, // the session's id; empty for an agent
    served: Arc<Served>,
}

struct Served {
    handlers: Handlers,
    #[cfg(feature = "tokio")]
    runtime: Option<tokio::runtime::Handle>,
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
    op: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    deadline_ms: u64,
    params: Option<Box<RawValue>>,
}

impl Desk {
    pub(crate) fn new(agent: Handle) -> Arc<Self> {
        Arc::new(Self { agent, extensions: Mutex::default(), open: Mutex::default() })
    }

    /// Makes an extension known to the library. `scope` is the session's id, or empty.
    pub(crate) fn register(
        self: &Arc<Self>,
        owner: Handle,
        scope: &str,
        kind: &str,
        spec: &Value,
        handlers: Handlers,
    ) -> Result<Registration> {
        const OP: &str = "host.register";
        let word = CString::new(kind).map_err(|_| CodeError::bad_value(OP, "the kind of an extension has no NUL in it"))?;
        let text = wire::encode(OP, spec)?;
        let name = spec["name"].as_str().unwrap_or("").to_owned();
        let served = Arc::new(Served {
            handlers,
            #[cfg(feature = "tokio")]
            runtime: tokio::runtime::Handle::try_current().ok(),
        });
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let given = Registration { desk: Arc::downgrade(self), id, kind: kind.to_owned(), name: name.clone() };
        // It is there before the library knows of it, which may ask at once.
        lock(&self.extensions).push(Registered { id, owner, handle: 0, kind: kind.to_owned(), name, scope: scope.to_owned(), served });
        let registered = ffi::host_register(owner, &word, &text);
        let mut extensions = lock(&self.extensions);
        let at = extensions.iter().position(|r| r.id == id);
        match (registered, at) {
            (Ok(handle), Some(at)) => extensions[at].handle = handle,
            (Ok(handle), None) => {
                drop(extensions); // it was taken back meanwhile
                ffi::close_quietly(handle, CLOSE_MS);
            }
            (Err(err), at) => {
                let gone = at.map(|at| extensions.remove(at));
                drop(extensions);
                drop(gone);
                return Err(err);
            }
        }
        Ok(given)
    }

    /// Takes back the first extension that fits; false if there is none.
    pub(crate) fn withdraw(&self, fits: impl Fn(&Registered) -> bool) -> bool {
        let gone = {
            let mut extensions = lock(&self.extensions);
            let at = extensions.iter().position(fits);
            at.map(|at| extensions.remove(at))
        };
        let Some(gone) = gone else { return false };
        ffi::close_quietly(gone.handle, CLOSE_MS);
        true
    }

    /// Lets go of all extensions of an agent or a session that has ended.
    pub(crate) fn forget(&self, owner: Handle) {
        // What they captured is dropped outside of the lock: it may be a session.
        let gone: Vec<Registered> = {
            let mut extensions = lock(&self.extensions);
            let (gone, kept) = std::mem::take(&mut *extensions).into_iter().partition(|r| r.owner == owner);
            *extensions = kept;
            gone
        };
        drop(gone);
    }

    /// Cancels what is under way.
    pub(crate) fn end(&self) {
        let open: Vec<Arc<Request>> = lock(&self.open).drain().map(|(_, request)| request).collect();
        open.iter().for_each(|request| request.cancelled.happen("the agent is closed"));
        let gone = std::mem::take(&mut *lock(&self.extensions));
        drop(gone);
    }

    /// The request is withdrawn.
    pub(crate) fn cancel(&self, number: u64, reason: &str) {
        let request = lock(&self.open).remove(&number);
        if let Some(request) = request {
            request.cancelled.happen(if reason.is_empty() { "cancelled" } else { reason });
        }
    }

    /// Lets what is asked for begin.
    pub(crate) fn begin(self: &Arc<Self>, asked: HostRequest) {
        let answer = Answer { desk: Arc::clone(self), number: asked.request, given: false };
        let Some(served) = self.find(&asked) else {
            let message = format!("{} {:?} is no longer there", asked.kind, asked.name);
            return answer.give(Err(ExtensionError::new("NotRegistered", message)));
        };
        let Some(handler) = served.handlers.get(&asked.op) else {
            let what = format!("{} of {} {:?}", asked.op, asked.kind, asked.name);
            return answer.give(Err(ExtensionError::unsupported(what)));
        };
        let request = Arc::new(Request {
            agent: self.agent,
            number: asked.request,
            kind: asked.kind,
            name: asked.name,
            op: asked.op,
            session_id: asked.session_id,
            deadline: (asked.deadline_ms > 0).then(|| Instant::now() + Duration::from_millis(asked.deadline_ms)),
            cancelled: Once::default(),
        });
        lock(&self.open).insert(request.number, Arc::clone(&request));
        served.run(handler, asked.params, Context(request), answer);
    }

    /// A session's own extension, or its agent's.
    fn find(&self, asked: &HostRequest) -> Option<Arc<Served>> {
        let extensions = lock(&self.extensions);
        let named = || extensions.iter().filter(|r| r.kind == asked.kind && r.name == asked.name);
        let own = named().find(|r| r.scope == asked.session_id);
        own.or_else(|| named().find(|r| r.scope.is_empty())).map(|r| Arc::clone(&r.served))
    }
}

impl Served {
    fn run(&self, handler: &Handler, params: Params, context: Context, answer: Answer) {
        // The function itself is called inside, so that it panics there and on that thread.
        let function = Arc::clone(&handler.answer);
        let work = Caught(Box::pin(async move { function(params, context).await }));
        let work = async move { answer.give(work.await) };
        #[cfg(feature = "tokio")]
        if let Some(runtime) = self.runtime.as_ref().filter(|_| !handler.blocks) {
            runtime.spawn(work);
            return;
        }
        // If there is no thread, the answer goes with the work and says so.
        let _ = workers::run(move || block_on(work));
    }
}

/// The one answer to a request. Dropped without one, it says that.
struct Answer {
    desk: Arc<Desk>,
    number: u64,
    given: bool,
}

impl Answer {
    fn give(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Outcome) {
        self.given = true;
        let request = lock(&self.desk.open).remove(&self.number);
        drop(request); // outside of the lock: it has wakers
        let reply = match outcome {
            Ok(result) => [b"{\"result\":", result.as_slice(), b"}"].concat(),
            Err(failure) => failed(&failure),
        };
        // A late answer is dropped by the library, as it should be; of one that it refuses the
        // refusal is told.
        if let Err(err) = ffi::host_reply(self.desk.agent, self.number, &reply) {
            let refused = ExtensionError::new(err.code(), err.message()).with_kind(err.kind());
            let _ = ffi::host_reply(self.desk.agent, self.number, &failed(&refused));
        }
    }
}

fn failed(failure: &ExtensionError) -> Vec<u8> {
    let error = serde_json::to_vec(failure).unwrap_or_else(|_| br#"{"type":"Error","message":"it failed"}"#.to_vec());
    [b"{\"error\":", error.as_slice(), b"}"].concat()
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.given {
            self.send(Err(ExtensionError::new("Dropped", "it was dropped before it answered")));
        }
    }
}

//! What this program supplies, of any kind: the functions that answer its operations, and what
//! is registered with the library.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{self, Poll};

use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::context::Context;
use crate::desk::Desk;
use crate::error::Result;
use crate::failure::ExtensionError;
use crate::session::AgentSession;

/// What a function gives: the JSON of its result, or its failure.
pub(crate) type Outcome = std::result::Result<Vec<u8>, ExtensionError>;
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;
pub(crate) type Params = Option<Box<RawValue>>;
type Answer = dyn Fn(Params, Context) -> Running + Send + Sync;

/// The functions that answer the operations of an extension, by name: for
/// [`register_extension`](Agent::register_extension).
///
/// ```
/// use a3s_code_core::{Context, Handlers};
/// use serde_json::{json, Value};
///
/// let handlers = Handlers::new()
///     .on("check", |call: Value, _: Context| async move { Ok(json!({ "decision": if call["tool"] == "bash" { "deny" } else { "allow" } })) })
///     .on_blocking("expose", |_: Value, _: Context| Ok(json!({ "visible": true })));
/// # drop(handlers);
/// ```
#[derive(Default)]
pub struct Handlers(BTreeMap<String, Handler>);

#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) answer: Arc<Answer>,
    /// Whether it must have a thread of its own, since it blocks. Without a runtime all have.
    #[cfg_attr(not(feature = "tokio"), allow(dead_code))]
    pub(crate) blocks: bool,
}

impl Handlers {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers an operation with an async function. It runs in the tokio runtime that it is
    /// registered in (with the feature `tokio`), else on a thread of its own. `P` is what it is
    /// asked, such as `serde_json::Value`; what it gives is the result.
    #[must_use]
    pub fn on<P, F, Fut, R>(self, op: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<R, ExtensionError>> + Send + 'static,
        R: Serialize,
    {
        self.serve(op, false, function)
    }

    /// As [`on`](Self::on); with `blocks` it has a thread of its own.
    pub(crate) fn serve<P, F, Fut, R>(mut self, op: impl Into<String>, blocks: bool, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<R, ExtensionError>> + Send + 'static,
        R: Serialize,
    {
        let function = Arc::new(function);
        self.add(op, blocks, move |params, context| {
            let function = Arc::clone(&function);
            Box::pin(async move { encoded(function(decoded(params)?, context).await?) })
        });
        self
    }

    /// Answers an operation with a plain function, which runs on a thread of its own and may
    /// block it.
    #[must_use]
    pub fn on_blocking<P, F, R>(mut self, op: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        F: Fn(P, Context) -> std::result::Result<R, ExtensionError> + Send + Sync + 'static,
        R: Serialize,
    {
        let function = Arc::new(function);
        self.add(op, true, move |params, context| {
            let function = Arc::clone(&function);
            Box::pin(async move { encoded(function(decoded(params)?, context)?) })
        });
        self
    }

    pub(crate) fn add(&mut self, op: impl Into<String>, blocks: bool, answer: impl Fn(Params, Context) -> Running + Send + Sync + 'static) {
        self.0.insert(op.into(), Handler { answer: Arc::new(answer), blocks });
    }

    pub(crate) fn get(&self, op: &str) -> Option<&Handler> {
        self.0.get(op)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

pub(crate) fn decoded<P: DeserializeOwned>(params: Params) -> std::result::Result<P, ExtensionError> {
    let text = params.as_deref().map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|e| ExtensionError::new("InvalidArguments", e.to_string()))
}

pub(crate) fn encoded(result: impl Serialize) -> Outcome {
    serde_json::to_vec(&result)
        .map_err(|e| ExtensionError::new("InvalidResult", format!("the result has no JSON form: {e}")).with_kind("invalid"))
}

/// A future whose panic is a failure.
pub(crate) struct Caught(pub(crate) Running);

impl Future for Caught {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Outcome> {
        // After a panic the future is not polled again.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(ExtensionError::new("Panic", words(&*panic)))),
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

/// Something that is registered. It stays while its agent or session is open, also when nobody
/// holds this value; [`close`](Self::close) takes it back.
#[derive(Clone)]
pub struct Registration {
    pub(crate) desk: Weak<Desk>,
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Registration {
    /// What it is, such as `"model"`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Name it is registered under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes it back and cancels what it is serving; false if that was done before, or its agent
    /// or session has ended.
    pub fn close(&self) -> bool {
        self.desk.upgrade().is_some_and(|desk| desk.withdraw(|r| r.id == self.id))
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("kind", &self.kind).field("name", &self.name).finish_non_exhaustive()
    }
}

impl Agent {
    /// Supplies a part of the runtime, of any kind that the library knows, to every session of
    /// this agent. `spec` describes it; kinds, descriptions, operations and what they are asked
    /// and give are listed in `docs/extensions.md`. The functions with a kind in their name, such
    /// as [`register_model`](Self::register_model), do the same with types.
    ///
    /// What a function gives as an error, and its panic, is a failure that the library is told;
    /// an operation without a function is one of kind `unsupported`. Functions may use the
    /// library, the same session included, where docs/extensions.md does not say otherwise.
    ///
    /// # Errors
    /// INVALID_REQUEST for a bad description, UNSUPPORTED_OPERATION for an unknown kind,
    /// ALREADY_EXISTS for a taken name, SESSION_CLOSED.
    pub fn register_extension(&self, kind: &str, spec: serde_json::Value, handlers: Handlers) -> Result<Registration> {
        self.0.control.register(self.0.handle, "", kind, &spec, handlers)
    }

    /// Takes back what was registered with this agent; false if there is none.
    pub fn unregister_extension(&self, kind: &str, name: &str) -> bool {
        self.0.control.desk.withdraw(|r| r.owner == self.0.handle && r.kind == kind && r.name == name)
    }
}

/// What a program cannot do, for scenarios: they show what the library makes of it.
#[cfg(feature = "conformance")]
#[doc(hidden)]
impl Agent {
    /// Closes the stream that requests of the library come on.
    pub fn hang_up(&self) {
        self.0.control.hang_up();
    }
}

impl AgentSession {
    /// As [`Agent::register_extension`], for this session alone.
    ///
    /// # Errors
    /// As [`Agent::register_extension`]; INVALID_REQUEST for a kind that only agents take.
    pub fn register_extension(&self, kind: &str, spec: serde_json::Value, handlers: Handlers) -> Result<Registration> {
        self.0.agent.control.register(self.0.handle, self.session_id(), kind, &spec, handlers)
    }

    /// Takes back what was registered with this session; false if there is none.
    pub fn unregister_extension(&self, kind: &str, name: &str) -> bool {
        self.0.agent.control.desk.withdraw(|r| r.owner == self.0.handle && r.kind == kind && r.name == name)
    }
}

//! What a function of this program may know of the request it serves.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::failure::ExtensionError;
use crate::ffi::{self, Handle};
use crate::sync::Once;

/// The request that is served: what is asked, until when, and whether anybody still waits.
/// Clones are the same request.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Request>);

pub(crate) struct Request {
    pub(crate) agent: Handle,
    pub(crate) number: u64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) session_id: String,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancelled: Once,
}

impl Context {
    /// What is asked, such as `"tool"` or `"model"`.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// Name it is registered under.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The operation, such as `"call"` or `"stream"`.
    pub fn op(&self) -> &str {
        &self.0.op
    }

    /// Session the request belongs to; empty if it belongs to none.
    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// When the answer stops counting; None for never.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// Time until the deadline, zero when it has passed; None if there is none.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether nobody waits for the answer any more: cancelled, or past the deadline.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.words().is_some() || self.0.deadline.is_some_and(|at| Instant::now() >= at)
    }

    /// Why the request was cancelled; None if it was not.
    pub fn reason(&self) -> Option<String> {
        self.0.cancelled.words()
    }

    /// A future that is ready once the request is cancelled. What serves it is not stopped: it
    /// goes on, and what it gives is dropped.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled(Arc::clone(&self.0))
    }

    /// Blocks up to `limit`, and less when the request is cancelled; whether it is.
    pub fn wait_cancelled(&self, limit: Duration) -> bool {
        let limit = self.remaining().map_or(limit, |left| left.min(limit));
        self.0.cancelled.wait(limit) || self.is_cancelled()
    }

    /// Tells a piece of the answer before its end, where the operation has such chunks. Waits
    /// while the library is many pieces behind.
    ///
    /// # Errors
    /// Of type `Cancelled` if nobody waits for the answer any more: with `?` that ends what makes
    /// the pieces. INVALID_REQUEST for a chunk that the operation does not have.
    pub fn chunk(&self, chunk: &(impl Serialize + ?Sized)) -> Result<(), ExtensionError> {
        match ffi::host_chunk(self.0.agent, self.0.number, &serde_json::to_vec(chunk)?)? {
            true => Ok(()),
            false => Err(ExtensionError::withdrawn()),
        }
    }
}

/// What a function cannot do, for scenarios: they show what the library makes of it.
#[cfg(feature = "conformance")]
#[doc(hidden)]
impl Context {
    /// Hands in an answer beside the function's own; whether it counts.
    pub fn answer(&self, reply: &serde_json::Value) -> bool {
        ffi::host_reply(self.0.agent, self.0.number, reply.to_string().as_bytes()).unwrap_or(false)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { kind, name, op, session_id, .. } = &*self.0;
        f.debug_struct("Context")
            .field("kind", kind)
            .field("name", name)
            .field("op", op)
            .field("session_id", session_id)
            .finish_non_exhaustive()
    }
}

/// See [`Context::cancelled`].
pub struct Cancelled(Arc<Request>);

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        self.0.cancelled.poll(cx)
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancelled")
    }
}

/// A [`Context`] whose answer may come in pieces, which are a `C`.
pub struct Chunks<C>(Context, PhantomData<fn(C)>);

impl<C: Serialize> Chunks<C> {
    pub(crate) fn new(context: Context) -> Self {
        Self(context, PhantomData)
    }

    /// Tells a piece. Waits while the library is many pieces behind; as it may wait for whoever
    /// reads the events, do not send megabytes from a runtime whose only thread reads them: block
    /// a thread of your own, with `BLOCKS`.
    ///
    /// # Errors
    /// As [`Context::chunk`].
    pub fn send(&self, chunk: impl Into<C>) -> Result<(), ExtensionError> {
        self.0.chunk(&chunk.into())
    }
}

impl<C> Deref for Chunks<C> {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

impl<C> Clone for Chunks<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<C> fmt::Debug for Chunks<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chunks").field(&self.0).finish()
    }
}

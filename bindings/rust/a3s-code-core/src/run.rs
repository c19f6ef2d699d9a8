//! One prompt, from its admission to its end.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Result;
use crate::ffi::{self, Handle};
use crate::generated::operations as ops;
use crate::results::AgentResult;
use crate::session::SessionInner;
use crate::stream::{EventReceiver, Keep, Source};
use crate::{wire, RunSnapshot};

/// The run behind a stream of events: cancels it, and waits for its end. Await it for its result:
/// that does not disturb whoever reads its events. Dropping it leaves the run.
pub struct RunHandle {
    pub(crate) inner: Arc<RunInner>,
    id: String,
    /// A stream of its own, read to its end and thrown away; opened by the first poll.
    end: Option<Source>,
}

pub(crate) struct RunInner {
    pub(crate) handle: Handle,
    /// A session that is dropped would take its run along.
    _session: Arc<SessionInner>,
}

impl Drop for RunInner {
    fn drop(&mut self) {
        ffi::close_quietly(self.handle, 0);
    }
}

impl RunHandle {
    pub(crate) fn start(session: Arc<SessionInner>, request: &[u8]) -> Result<Self> {
        let handle = ffi::run_start(session.handle, request)?;
        let inner = Arc::new(RunInner { handle, _session: session });
        let mut run = Self { inner, id: String::new(), end: None };
        run.id = run.snapshot()?.map(|r| r.id).unwrap_or_default();
        Ok(run)
    }

    /// Id of the run, as in [`AgentSession::runs`](crate::AgentSession::runs).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is known of the run now; None if it is no longer kept.
    ///
    /// # Errors
    /// FORKED in a forked child.
    pub fn snapshot(&self) -> Result<Option<RunSnapshot>> {
        wire::field(&ffi::call(self.inner.handle, ops::RUN_INFO.name, b"{}")?, "run")
    }

    /// Whether the run has ended.
    pub fn is_finished(&self) -> bool {
        let over = |run: RunSnapshot| matches!(run.status.as_str(), "completed" | "failed" | "cancelled");
        self.snapshot().map_or(true, |run| run.is_none_or(over))
    }

    /// Asks the run to stop, and returns at once: it ends with one error event with code
    /// CANCELLED. Does nothing to a run that has ended.
    pub fn cancel(&self) {
        self.cancel_because("");
    }

    /// [`cancel`](Self::cancel), with words for the record.
    pub fn cancel_because(&self, reason: &str) {
        // It fails only if there is no run to stop.
        let _ = ffi::run_cancel(self.inner.handle, reason.as_bytes());
    }

    /// Another name of [`cancel`](Self::cancel).
    pub fn abort(&self) {
        self.cancel();
    }

    /// The events of the run from its first one, read once more beside other readers.
    ///
    /// # Errors
    /// FORKED in a forked child.
    pub fn events(&self) -> Result<EventReceiver> {
        EventReceiver::of_run(self)
    }

    /// Waits for the end of the run and gives its result; blocks this thread.
    ///
    /// # Errors
    /// What the run failed with.
    pub fn wait(&self) -> Result<AgentResult> {
        wire::decode(&ffi::run_wait(self.inner.handle)?)
    }
}

/// The result of the run, or what it failed with.
impl Future for RunHandle {
    type Output = Result<AgentResult>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<AgentResult>> {
        const BUFFER: usize = 16 << 10;
        let run = &mut *self;
        let end = match &mut run.end {
            Some(end) => end,
            none => none.insert(Source::open(run.inner.handle, Keep::Run(Arc::clone(&run.inner)), BUFFER)?),
        };
        loop {
            match end.poll_batch(cx, |_| Ok(())) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(true)) => {}
                // Over, or the stream cannot say: the run itself can.
                Poll::Ready(Ok(false) | Err(_)) => break,
            }
        }
        self.end = None;
        Poll::Ready(self.wait())
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

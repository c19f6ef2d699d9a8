//! The events of a run, for futures and for threads.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use futures_core::Stream;

use crate::decode::Decoder;
use crate::error::{CodeError, Result};
use crate::event::{AgentEvent, EventEnvelope};
use crate::ffi::{Handle, Read, Reader};
use crate::readiness::Readiness;
use crate::run::{RunHandle, RunInner};
use crate::session::SessionInner;

/// Events in order, from a run's first to its terminal one. It is a
/// [`Stream`](futures_core::Stream), and it can be iterated.
///
/// ```no_run
/// # use a3s_code_core::{AgentEvent, AgentSession, Result};
/// # async fn f(session: AgentSession) -> Result<()> {
/// let (mut events, _run) = session.stream("What is this project?", None).await?;
/// while let Some(event) = events.recv().await {
///     match event {
///         AgentEvent::TextDelta { text } => print!("{text}"),
///         AgentEvent::Error { message, .. } => eprintln!("failed: {message}"),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
///
/// Without async: `for event in events`. After the last event the session is free for the next
/// prompt. Dropping this leaves the run; its events stay readable with
/// [`AgentSession::run_events`](crate::AgentSession::run_events).
///
/// Read it or drop it: a run never waits for a slow reader, except that a session without a store
/// keeps only so many events in memory. Then the run waits for what is not read yet, at most
/// `stall_timeout_ms`, and what is lost after that is told as [`AgentEvent::Gap`].
///
/// Should the stream itself break off, it ends with an [`AgentEvent::Error`] that says why and
/// that is not among the run's records.
pub struct EventReceiver {
    source: Source,
    decoder: Decoder,
    queue: VecDeque<EventEnvelope>,
}

/// Where bytes come from: a stream of the library, with what keeps it alive.
pub(crate) struct Source {
    // Before what keeps it alive: fields are dropped in order.
    readiness: Readiness,
    reader: Reader,
    ended: bool,
    batches: u8,
    _keep: Keep,
}

pub(crate) enum Keep {
    Run(#[allow(dead_code)] Arc<RunInner>),
    Session(#[allow(dead_code)] Arc<SessionInner>),
}

/// Bytes that a stream's buffer starts with.
const BUFFER: usize = 32 << 10;
/// Batches after which other tasks get their turn.
const TURN: u8 = 8;

impl Source {
    pub(crate) fn open(handle: Handle, keep: Keep, cap: usize) -> Result<Self> {
        Ok(Self { readiness: Readiness::None, reader: Reader::open(handle, cap)?, ended: false, batches: 0, _keep: keep })
    }

    /// Hands the next batch to `take`; false at the end.
    pub(crate) fn poll_batch(&mut self, cx: &mut Context<'_>, mut take: impl FnMut(&[u8]) -> Result<()>) -> Poll<Result<bool>> {
        if self.batches >= TURN {
            self.batches = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            match self.reader.read(0)? {
                Read::Batch(json) => {
                    self.batches += 1;
                    return Poll::Ready(take(json).map(|()| true));
                }
                Read::End => {
                    self.ended = true;
                    self.readiness = Readiness::None;
                    return Poll::Ready(Ok(false));
                }
                Read::Nothing => {
                    self.batches = 0;
                    ready!(self.readiness.poll(cx, || self.reader.fd()))?;
                }
            }
        }
    }
}

impl EventReceiver {
    pub(crate) fn of_run(run: &RunHandle) -> Result<Self> {
        Ok(Self::over(Source::open(run.inner.handle, Keep::Run(Arc::clone(&run.inner)), BUFFER)?))
    }

    pub(crate) fn of_session(session: &Arc<SessionInner>) -> Result<Self> {
        Ok(Self::over(Source::open(session.handle, Keep::Session(Arc::clone(session)), BUFFER)?))
    }

    fn over(source: Source) -> Self {
        Self { source, decoder: Decoder::new(), queue: VecDeque::new() }
    }

    /// The next event, or None after the last one. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        self.recv_envelope().await.map(|e| e.event)
    }

    /// The next event with its place in the run.
    pub async fn recv_envelope(&mut self) -> Option<EventEnvelope> {
        std::future::poll_fn(|cx| self.poll_envelope(cx)).await
    }

    /// The next event, or None after the last one; blocks this thread.
    pub fn blocking_recv(&mut self) -> Option<AgentEvent> {
        self.blocking_recv_envelope().map(|e| e.event)
    }

    /// The next event with its place in the run; blocks this thread.
    pub fn blocking_recv_envelope(&mut self) -> Option<EventEnvelope> {
        while self.queue.is_empty() && !self.source.ended {
            let batch = match self.source.reader.read(-1) {
                Ok(Read::Batch(json)) => self.decoder.batch(json, &mut self.queue),
                Ok(Read::Nothing) => Ok(()),
                Ok(Read::End) => {
                    self.source.ended = true;
                    Ok(())
                }
                Err(err) => Err(err),
            };
            batch.unwrap_or_else(|err| self.break_off(&err));
        }
        self.queue.pop_front()
    }

    /// Events with their places in the run, as a [`Stream`](futures_core::Stream) or to iterate.
    pub fn envelopes(self) -> Envelopes {
        Envelopes(self)
    }

    fn poll_envelope(&mut self, cx: &mut Context<'_>) -> Poll<Option<EventEnvelope>> {
        let Self { source, decoder, queue } = self;
        while queue.is_empty() && !source.ended {
            if let Err(err) = ready!(source.poll_batch(cx, |json| decoder.batch(json, queue))) {
                self.break_off(&err);
                break;
            }
        }
        Poll::Ready(self.queue.pop_front())
    }

    fn break_off(&mut self, err: &CodeError) {
        self.source.ended = true;
        self.queue.push_back(EventEnvelope { event: AgentEvent::from_error(err), metadata: None, raw: None });
    }
}

impl Stream for EventReceiver {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        self.poll_envelope(cx).map(|e| e.map(|e| e.event))
    }
}

/// Iterates on this thread, which it blocks between events. `next` belongs to the iterator, so
/// that it does not meet the `next` of streams.
impl IntoIterator for EventReceiver {
    type Item = AgentEvent;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        IntoIter(self)
    }
}

impl<'a> IntoIterator for &'a mut EventReceiver {
    type Item = AgentEvent;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        Iter(self)
    }
}

impl EventReceiver {
    /// Iterates on this thread, which it blocks between events.
    pub fn iter(&mut self) -> Iter<'_> {
        Iter(self)
    }
}

impl fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReceiver").field("ended", &self.source.ended).finish_non_exhaustive()
    }
}

/// The events of a run, for `for`.
#[derive(Debug)]
pub struct IntoIter(EventReceiver);

impl Iterator for IntoIter {
    type Item = AgentEvent;

    fn next(&mut self) -> Option<AgentEvent> {
        self.0.blocking_recv()
    }
}

/// The events of a run, for `for`.
#[derive(Debug)]
pub struct Iter<'a>(&'a mut EventReceiver);

impl Iterator for Iter<'_> {
    type Item = AgentEvent;

    fn next(&mut self) -> Option<AgentEvent> {
        self.0.blocking_recv()
    }
}

/// See [`EventReceiver::envelopes`].
#[derive(Debug)]
pub struct Envelopes(EventReceiver);

impl Stream for Envelopes {
    type Item = EventEnvelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<EventEnvelope>> {
        self.0.poll_envelope(cx)
    }
}

impl IntoIterator for Envelopes {
    type Item = EventEnvelope;
    type IntoIter = std::iter::FromFn<Box<dyn FnMut() -> Option<EventEnvelope> + Send>>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::iter::from_fn(Box::new(move || self.0.blocking_recv_envelope()))
    }
}

//! What every operation gives: a value to `.await` or to `.wait()` for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use crate::agent::AgentInner;
use crate::control::Control;
use crate::error::{CodeError, Result};
use crate::ffi::{self, Buf, Handle};
use crate::generated::operations::Operation;
use crate::session::SessionInner;
use crate::sync::{block_on, Slot};

/// An operation that has not begun: `.await` it, or [`wait`](Self::wait) for it.
///
/// Awaiting works in every executor and blocks no thread of it. Dropping it while it is under way
/// cancels it: the run of a dropped `send` ends, a tool is stopped.
///
/// ```no_run
/// # async fn f(session: a3s_code_core::AgentSession) -> a3s_code_core::Result<()> {
/// session.save().await?; // in async code
/// session.save().wait()?; // anywhere else: blocks this thread
/// # Ok(()) }
/// ```
#[must_use = "nothing happens before this is awaited or waited for"]
pub struct Call<T>(State<T>);

type Decode<T> = fn(&[u8]) -> Result<T>;
type Job<T> = Box<dyn FnOnce() -> Result<T> + Send>;
type Next<T> = Box<dyn FnMut(Result<Buf>) -> Step<T> + Send>;

/// What follows the result of an operation.
pub(crate) enum Step<T> {
    Done(Result<T>),
    More(Request),
}

enum State<T> {
    /// An operation, and what its result means.
    New(Result<Request>, Meaning<T>),
    Started {
        request: Request,
        control: Arc<Control>,
        number: u64,
        answer: Arc<Slot<Result<Buf>>>,
        meaning: Meaning<T>,
    },
    /// Something that the library only offers as one call.
    Job {
        job: Job<T>,
        waits: bool,
    },
    Thread(Arc<Slot<Result<T>>>),
    /// An operation on a thread of its own, since its end could not be told.
    Aside(Arc<Slot<Result<Buf>>>, Meaning<T>),
    Over,
}

enum Meaning<T> {
    Decode(Decode<T>),
    Next(Next<T>),
}

impl<T> Meaning<T> {
    fn of(&mut self, result: Result<Buf>) -> Step<T> {
        match self {
            Self::Decode(decode) => Step::Done(result.and_then(|buf| decode(&buf))),
            Self::Next(next) => next(result),
        }
    }
}

/// One call of an operation.
pub(crate) struct Request {
    pub(crate) on: On,
    pub(crate) operation: Operation,
    pub(crate) params: Vec<u8>,
}

/// What an operation works on; kept alive until it has ended.
#[derive(Clone)]
pub(crate) enum On {
    Agent(Arc<AgentInner>),
    Session(Arc<SessionInner>),
}

impl On {
    fn handle(&self) -> Handle {
        match self {
            Self::Agent(agent) => agent.handle,
            Self::Session(session) => session.handle,
        }
    }

    fn control(&self) -> &Arc<Control> {
        match self {
            Self::Agent(agent) => &agent.control,
            Self::Session(session) => &session.agent.control,
        }
    }
}

impl Request {
    fn run(&self) -> Result<Buf> {
        ffi::call(self.on.handle(), self.operation.name, &self.params)
    }
}

impl<T: Send + 'static> Call<T> {
    /// An operation with an answer of one kind.
    pub(crate) fn operation(request: Result<Request>, decode: Decode<T>) -> Self {
        Self(State::New(request, Meaning::Decode(decode)))
    }

    /// An operation whose answer may lead to another one.
    pub(crate) fn steps(request: Result<Request>, next: impl FnMut(Result<Buf>) -> Step<T> + Send + 'static) -> Self {
        Self(State::New(request, Meaning::Next(Box::new(next))))
    }

    /// Something that does not wait.
    pub(crate) fn now(job: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self(State::Job { job: Box::new(job), waits: false })
    }

    /// Something that waits and has no started form in the library: awaiting it takes a thread.
    pub(crate) fn thread(job: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self(State::Job { job: Box::new(job), waits: true })
    }

    /// Blocks this thread until the operation has ended.
    ///
    /// # Errors
    /// What the operation fails with.
    pub fn wait(mut self) -> Result<T> {
        match std::mem::replace(&mut self.0, State::Over) {
            State::New(mut request, mut meaning) => loop {
                match meaning.of(request?.run()) {
                    Step::Done(result) => return result,
                    Step::More(next) => request = Ok(next),
                }
            },
            State::Job { job, .. } => job(),
            begun => block_on(Self(begun)),
        }
    }
}

impl<T: Send + 'static> State<T> {
    /// Goes on as far as it can. Ok is a state that waits and has left the waker with what it
    /// waits for.
    fn advance(self, cx: &mut Context<'_>) -> std::result::Result<Self, Result<T>> {
        match self {
            Self::New(request, meaning) => begin(request.map_err(Err)?, meaning)?.advance(cx),
            Self::Started { request, control, number, answer, mut meaning } => match answer.poll(cx) {
                Poll::Pending => Ok(Self::Started { request, control, number, answer, meaning }),
                Poll::Ready(result) => match meaning.of(result) {
                    Step::Done(result) => Err(result),
                    Step::More(next) => begin(next, meaning)?.advance(cx),
                },
            },
            Self::Aside(slot, mut meaning) => match slot.poll(cx) {
                Poll::Pending => Ok(Self::Aside(slot, meaning)),
                Poll::Ready(result) => match meaning.of(result) {
                    Step::Done(result) => Err(result),
                    Step::More(next) => begin(next, meaning)?.advance(cx),
                },
            },
            Self::Job { job, waits: false } => Err(job()),
            Self::Job { job, waits: true } => Self::Thread(aside(job).map_err(Err)?).advance(cx),
            Self::Thread(slot) => match slot.poll(cx) {
                Poll::Pending => Ok(Self::Thread(slot)),
                Poll::Ready(result) => Err(result),
            },
            Self::Over => panic!("a call was polled after it had ended"),
        }
    }
}

/// Begins an operation: one that does not wait is over at once.
fn begin<T: Send + 'static>(mut request: Request, mut meaning: Meaning<T>) -> std::result::Result<State<T>, Result<T>> {
    while !request.operation.blocking {
        match meaning.of(request.run()) {
            Step::Done(result) => return Err(result),
            Step::More(next) => request = next,
        }
    }
    let control = Arc::clone(request.on.control());
    match control.start(request.on.handle(), request.operation.name, &request.params) {
        Ok(Some((number, answer))) => Ok(State::Started { request, control, number, answer, meaning }),
        Ok(None) => Ok(State::Aside(aside(Box::new(move || request.run())).map_err(Err)?, meaning)),
        Err(err) => match meaning.of(Err(err)) {
            Step::Done(result) => Err(result),
            Step::More(next) => begin(next, meaning),
        },
    }
}

/// Runs a job on a thread of its own.
fn aside<R: Send + 'static>(job: Job<R>) -> Result<Arc<Slot<Result<R>>>> {
    let slot = Slot::new();
    let its = Arc::clone(&slot);
    let started = thread::Builder::new().name("a3s-open".to_owned()).spawn(move || its.put(job()));
    started.map(|_| slot).map_err(|e| CodeError::io("thread.start", &e))
}

impl<T: Send + 'static> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match std::mem::replace(&mut self.0, State::Over).advance(cx) {
            Err(result) => Poll::Ready(result),
            Ok(waiting) => {
                self.0 = waiting;
                Poll::Pending
            }
        }
    }
}

// A call holds nothing that points into itself.
impl<T> Unpin for Call<T> {}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if let State::Started { control, number, .. } = &self.0 {
            control.abandon(*number);
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::New(..) | State::Job { .. } => "new",
            State::Over => "over",
            _ => "under way",
        };
        f.debug_tuple("Call").field(&state).finish()
    }
}

//! How a future waits for a descriptor: in tokio's event loop when it is polled there (feature
//! `tokio`), else through this crate's reactor. A future may move from one to the other.

use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use crate::error::Result;
use crate::reactor::Source;

#[derive(Default)]
pub(crate) enum Readiness {
    /// Nothing has waited yet.
    #[default]
    None,
    Reactor(Source),
    #[cfg(feature = "tokio")]
    Tokio(tokio::runtime::Id, tokio::io::unix::AsyncFd<OwnedFd>),
}

impl Readiness {
    /// Is asked after a read that found nothing. Pending: the task is woken once there may be
    /// something. Ready: read again, something may have come in between.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, fd: impl Fn() -> Result<OwnedFd>) -> Poll<Result<()>> {
        #[cfg(feature = "tokio")]
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            match self.poll_tokio(cx, runtime.id(), &fd) {
                Poll::Ready(Ok(false)) => *self = Self::None, // that runtime is at its end
                Poll::Ready(other) => return Poll::Ready(other.map(drop)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if !matches!(self, Self::Reactor(_)) {
            *self = Self::Reactor(Source::new(fd()?)?);
        }
        let Self::Reactor(source) = self else { unreachable!() };
        // The reactor looks at the descriptor as it is, so nothing is missed.
        source.wake_when_readable(cx)?;
        Poll::Pending
    }

    /// Gives false if the runtime does not watch descriptors any more.
    #[cfg(feature = "tokio")]
    fn poll_tokio(&mut self, cx: &mut Context<'_>, id: tokio::runtime::Id, fd: impl Fn() -> Result<OwnedFd>) -> Poll<Result<bool>> {
        if !matches!(self, Self::Tokio(its, _) if *its == id) {
            let watched = crate::ffi::watch(fd()?).map_err(|e| crate::CodeError::io("stream.watch", &e))?;
            *self = Self::Tokio(id, watched);
        }
        let Self::Tokio(_, watched) = self else { unreachable!() };
        match watched.poll_read_ready(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Ok(false)),
            Poll::Ready(Ok(mut guard)) => {
                // What this clears is read now; what comes later is told anew.
                guard.clear_ready();
                Poll::Ready(Ok(true))
            }
        }
    }
}

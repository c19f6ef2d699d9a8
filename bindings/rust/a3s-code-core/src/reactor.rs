//! The one thread of this crate: waits for descriptors and wakes who waits for them. It works
//! beside every executor, and it hears what the library says on agents' control streams.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Waker};
use std::thread;

use crate::error::{CodeError, Result};
use crate::ffi::epoll::{Epoll, Watch};
use crate::sync::{guarded, lock};

/// Hears that a descriptor is readable, on the reactor's thread: it must not wait there.
pub(crate) trait Listener: Send + Sync {
    /// Takes what is there.
    fn ready(&self) -> Heard;
    /// Is called some time after [`Heard::LookAgain`].
    fn look_again(&self);
}

/// What a listener found.
pub(crate) enum Heard {
    /// More may come.
    More,
    /// More may come, and something may have been missed.
    LookAgain,
    /// Nothing will come any more.
    End,
}

enum Entry {
    /// A future that waits, or none at the moment.
    Waker(Option<Waker>),
    Listener(Arc<dyn Listener>),
}

struct Reactor {
    epoll: Epoll,
    entries: Mutex<HashMap<u64, Entry>>,
    last: AtomicU64,
}

/// How long after a listener missed something it looks again, in milliseconds.
const AGAIN_MS: i32 = 200;

fn reactor() -> Result<&'static Reactor> {
    static REACTOR: OnceLock<Arc<Reactor>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(reactor) = REACTOR.get() {
        return Ok(reactor);
    }
    let _one = lock(&STARTING);
    if let Some(reactor) = REACTOR.get() {
        return Ok(reactor);
    }
    let failed = |e| CodeError::io("reactor.start", &e);
    let made = Arc::new(Reactor { epoll: Epoll::new().map_err(failed)?, entries: Mutex::default(), last: AtomicU64::new(0) });
    let its = Arc::clone(&made);
    thread::Builder::new().name("a3s-reactor".to_owned()).spawn(move || its.run()).map_err(failed)?;
    Ok(REACTOR.get_or_init(|| made))
}

impl Reactor {
    fn run(&self) {
        let mut ready = Vec::new();
        let mut again: Vec<Arc<dyn Listener>> = Vec::new();
        loop {
            let timeout = if again.is_empty() { -1 } else { AGAIN_MS };
            if self.epoll.wait(timeout, &mut ready).is_err() {
                return; // only in a forked child, whose copy of this thread does not exist anyway
            }
            if ready.is_empty() {
                again.drain(..).for_each(|listener| listener.look_again());
            }
            for id in ready.drain(..) {
                match self.told(id) {
                    Some(Told::Wake(waker)) => guarded(|| waker.wake()),
                    Some(Told::Listener(listener)) => match listener.ready() {
                        Heard::More => {}
                        Heard::LookAgain => {
                            if !again.iter().any(|l| Arc::ptr_eq(l, &listener)) {
                                again.push(listener);
                            }
                        }
                        Heard::End => self.remove(id),
                    },
                    None => {}
                }
            }
        }
    }

    /// What was there is dropped outside of the lock: a waker may be the last to hold a task, and
    /// that may hold a source.
    fn put(&self, id: u64, entry: Entry) {
        let gone = lock(&self.entries).insert(id, entry);
        drop(gone);
    }

    fn remove(&self, id: u64) {
        let gone = lock(&self.entries).remove(&id);
        drop(gone);
    }

    fn told(&self, id: u64) -> Option<Told> {
        match lock(&self.entries).get_mut(&id)? {
            Entry::Waker(waker) => waker.take().map(Told::Wake),
            Entry::Listener(listener) => Some(Told::Listener(Arc::clone(listener))),
        }
    }
}

enum Told {
    Wake(Waker),
    Listener(Arc<dyn Listener>),
}

/// A descriptor that the reactor watches, until it is dropped.
pub(crate) struct Source {
    reactor: &'static Reactor,
    fd: OwnedFd,
    id: u64,
}

impl Source {
    /// A descriptor that a future waits for.
    pub(crate) fn new(fd: OwnedFd) -> Result<Self> {
        Self::add(fd, Entry::Waker(None), Watch::Off)
    }

    /// A descriptor with a listener.
    pub(crate) fn listen(fd: OwnedFd, listener: Arc<dyn Listener>) -> Result<Self> {
        Self::add(fd, Entry::Listener(listener), Watch::Always)
    }

    fn add(fd: OwnedFd, entry: Entry, how: Watch) -> Result<Self> {
        let reactor = reactor()?;
        let id = reactor.last.fetch_add(1, Ordering::Relaxed);
        reactor.put(id, entry);
        let source = Self { reactor, fd, id };
        reactor.epoll.add(source.fd.as_fd(), id, how).map_err(|e| CodeError::io("reactor.add", &e))?;
        Ok(source)
    }

    /// Wakes the task once the descriptor is readable.
    pub(crate) fn wake_when_readable(&self, cx: &Context<'_>) -> Result<()> {
        self.reactor.put(self.id, Entry::Waker(Some(cx.waker().clone())));
        self.reactor.epoll.set(self.fd.as_fd(), self.id, Watch::Once).map_err(|e| CodeError::io("reactor.arm", &e))
    }

    /// Stops watching; the descriptor stays.
    pub(crate) fn ignore(&self) {
        self.reactor.remove(self.id);
        self.reactor.epoll.remove(self.fd.as_fd());
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.ignore();
    }
}

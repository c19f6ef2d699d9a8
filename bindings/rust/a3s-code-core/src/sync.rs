//! Small helpers for threads and futures that the standard library lacks.

use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Locks; what a panicking thread left behind is as good as any other state here.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs code that may be an executor's or a program's, as wakers are, and what drops their values.
/// Its panic, which the hook has told, must end neither this thread nor what others wait for.
pub(crate) fn guarded(code: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(code)) {
        std::mem::forget(panic); // dropping it may panic again
    }
}

/// Runs a future on this thread, which sleeps while there is nothing to do.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// A value that one thread leaves and one future picks up.
pub(crate) struct Slot<T>(Mutex<Held<T>>);

struct Held<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Held { value: None, waker: None })))
    }

    pub(crate) fn put(&self, value: T) {
        let mut held = lock(&self.0);
        held.value = Some(value);
        let waker = held.waker.take();
        drop(held);
        if let Some(waker) = waker {
            guarded(|| waker.wake());
        }
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut held = lock(&self.0);
        if let Some(value) = held.value.take() {
            return Poll::Ready(value);
        }
        match &mut held.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// Something that happens once, and that threads and futures wait for.
#[derive(Default)]
pub(crate) struct Once {
    state: Mutex<Happened>,
    news: Condvar,
}

#[derive(Default)]
struct Happened {
    words: Option<String>,
    wakers: Vec<Waker>,
}

impl Once {
    /// Makes it happen, for a reason in words. A second time does nothing.
    pub(crate) fn happen(&self, words: &str) {
        let mut state = lock(&self.state);
        if state.words.is_some() {
            return;
        }
        state.words = Some(words.to_owned());
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.news.notify_all();
        wakers.into_iter().for_each(|waker| guarded(|| waker.wake()));
    }

    pub(crate) fn words(&self) -> Option<String> {
        lock(&self.state).words.clone()
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.words.is_some() {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Waits for it, at most `limit`; whether it happened.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let state = lock(&self.state);
        let (state, _) = self.news.wait_timeout_while(state, limit, |s| s.words.is_none()).unwrap_or_else(PoisonError::into_inner);
        state.words.is_some()
    }
}

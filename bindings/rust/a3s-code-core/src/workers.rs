//! Threads for what blocks. One that has nothing to do stays for a while, so that a request does
//! not cost a new one.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::sync::lock;

type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for more work.
const STAY: Duration = Duration::from_secs(10);

static WORKERS: Workers = Workers { queue: Mutex::new(Queue { jobs: VecDeque::new(), idle: 0 }), news: Condvar::new() };

struct Workers {
    queue: Mutex<Queue>,
    news: Condvar,
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait; each is good for one of the jobs.
    idle: usize,
}

/// Runs a job on a thread that nothing else runs on meanwhile.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut queue = lock(&WORKERS.queue);
    if queue.idle > queue.jobs.len() {
        queue.jobs.push_back(Box::new(job));
        drop(queue);
        WORKERS.news.notify_one();
        return Ok(());
    }
    drop(queue);
    let work = move || {
        job();
        while let Some(job) = next() {
            job();
        }
    };
    thread::Builder::new().name("a3s-worker".to_owned()).spawn(work).map(drop)
}

fn next() -> Option<Job> {
    let mut queue = lock(&WORKERS.queue);
    queue.idle += 1;
    let mut queue = WORKERS.news.wait_timeout_while(queue, STAY, |q| q.jobs.is_empty()).unwrap_or_else(PoisonError::into_inner).0;
    queue.idle -= 1;
    queue.jobs.pop_front()
}

//! A started run whose events are gathered meanwhile.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use a3s_code_core::{EventEnvelope, EventReceiver};
use serde_json::Value;

use crate::fail::{Fail, Mode};

/// Bounds everything a scenario waits for.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Gathered {
    typed: Vec<EventEnvelope>,
    events: Vec<Value>,
    ended: bool,
}

pub struct Running {
    gathered: Arc<(Mutex<Gathered>, Condvar)>,
    pub passed: usize,
    pub asked: usize,
}

impl Running {
    pub fn new(mut receiver: EventReceiver, mode: &Mode) -> Self {
        let gathered = Arc::new((Mutex::new(Gathered::default()), Condvar::new()));
        let into = Arc::clone(&gathered);
        let add = move |event: Option<EventEnvelope>| {
            let mut g = into.0.lock().expect("no panic");
            match event {
                Some(event) => {
                    g.events.push(serde_json::to_value(&event).expect("an event has a JSON form"));
                    g.typed.push(event);
                }
                None => g.ended = true,
            }
            into.1.notify_all();
            !g.ended
        };
        match mode {
            Mode::Threads => {
                std::thread::spawn(move || while add(receiver.blocking_recv_envelope()) {});
            }
            Mode::Tokio(handle) => {
                handle.spawn(async move { while add(receiver.recv_envelope().await) {} });
            }
        }
        Self { gathered, passed: 0, asked: 0 }
    }

    /// The first event from number `from` on that fits, and the number behind it.
    pub fn next(&self, from: usize, fits: impl Fn(&Value) -> bool) -> Result<(Value, usize), Fail> {
        let until = Instant::now() + PATIENCE;
        let mut g = self.gathered.0.lock().expect("no panic");
        loop {
            if let Some(i) = (from..g.events.len()).find(|i| fits(&g.events[*i])) {
                return Ok((g.events[i].clone(), i + 1));
            }
            if g.ended {
                return Err(Fail::Words("the run ended without it".into()));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Fail::Words("it did not come in time".into()));
            }
            g = self.gathered.1.wait_timeout(g, left).expect("no panic").0;
        }
    }

    /// Waits for the end and gives all events.
    pub fn whole(&self) -> Result<(Vec<EventEnvelope>, Vec<Value>), Fail> {
        let waited = self.next(usize::MAX, |_| false);
        let g = self.gathered.0.lock().expect("no panic");
        if !g.ended {
            waited?;
        }
        Ok((g.typed.clone(), g.events.clone()))
    }

    pub fn so_far(&self) -> Vec<Value> {
        self.gathered.0.lock().expect("no panic").events.clone()
    }
}

//! What the library says to one agent's host: that started calls have ended, and that it
//! wants a tool of this program. Heard on the reactor's thread, which runs nothing itself.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::codes;
use crate::desk::{Desk, HostRequest};
use crate::error::{CodeError, Result};
use crate::extension::{Handlers, Registration};
use crate::ffi::{self, Buf, Handle, Read, Reader};
use crate::reactor::{Heard, Listener, Source};
use crate::sync::{guarded, lock, Slot};

/// Where the result of a started call is left.
type Answer = Arc<Slot<Result<Buf>>>;

/// A started call.
struct Started {
    on: Handle,
    answer: Option<Answer>, // None if nobody waits for it any more
}

/// One agent's control stream. It is opened when it is first needed, and stays open.
pub(crate) struct Control {
    agent: Handle,
    stream: Mutex<Stream>,
    calls: Mutex<HashMap<u64, Started>>,
    pub(crate) desk: Arc<Desk>,
}

enum Stream {
    Unopened,
    Open {
        _source: Source,
        #[cfg_attr(not(feature = "conformance"), allow(dead_code))]
        handle: Handle,
    },
    Ended,
}

impl Control {
    pub(crate) fn new(agent: Handle) -> Arc<Self> {
        Arc::new(Self { agent, stream: Mutex::new(Stream::Unopened), calls: Mutex::default(), desk: Desk::new(agent) })
    }

    /// Opens the control stream, once. False if it has ended: the agent is closed.
    pub(crate) fn listen(self: &Arc<Self>) -> Result<bool> {
        let mut stream = lock(&self.stream);
        match *stream {
            Stream::Open { .. } => return Ok(true),
            Stream::Ended => return Ok(false),
            Stream::Unopened => {}
        }
        let reader = Reader::open(self.agent, 16 << 10)?;
        let (fd, handle) = (reader.fd()?, reader.handle());
        let ear = Ear { control: Arc::downgrade(self), reader: Mutex::new(reader) };
        *stream = Stream::Open { _source: Source::listen(fd, Arc::new(ear))?, handle };
        Ok(true)
    }

    /// Closes the control stream, as if this program's ears had died: for scenarios.
    #[cfg(feature = "conformance")]
    pub(crate) fn hang_up(&self) {
        if let Stream::Open { handle, .. } = *lock(&self.stream) {
            ffi::close_quietly(handle, 5000);
        }
    }

    /// Makes an extension known to the library, and listens for what it is asked.
    pub(crate) fn register<S: Serialize>(
        self: &Arc<Self>,
        owner: Handle,
        scope: &str,
        kind: &str,
        spec: &S,
        handlers: Handlers,
    ) -> Result<Registration> {
        let spec = serde_json::to_value(spec).map_err(|e| CodeError::bad_value("host.register", e.to_string()))?;
        self.listen()?;
        self.desk.register(owner, scope, kind, &spec, handlers)
    }

    /// Starts an operation and gives where its result will be; None if this cannot be told.
    pub(crate) fn start(self: &Arc<Self>, on: Handle, method: &CStr, params: &[u8]) -> Result<Option<(u64, Answer)>> {
        if !self.listen()? {
            return Ok(None);
        }
        // Held over the start: the reactor may hear of the end before this thread goes on.
        let mut calls = lock(&self.calls);
        let number = ffi::call_start(on, method, params)?;
        let answer = Slot::new();
        calls.insert(number, Started { on, answer: Some(Arc::clone(&answer)) });
        drop(calls);
        if matches!(*lock(&self.stream), Stream::Ended) {
            self.wait_for_all(); // it ended in between
        }
        Ok(Some((number, answer)))
    }

    /// Cancels a call that nobody waits for any more.
    pub(crate) fn abandon(&self, number: u64) {
        if let Some(started) = lock(&self.calls).get_mut(&number) {
            started.answer = None;
            ffi::call_cancel(started.on, number);
        }
    }

    /// Ends everything: the agent is gone.
    pub(crate) fn end(&self) {
        let ended = std::mem::replace(&mut *lock(&self.stream), Stream::Ended);
        drop(ended);
        self.desk.end();
        self.wait_for_all();
    }

    fn frame(&self, frame: &Frame<'_>) {
        match frame.kind {
            "call_result" => {
                if let Ok(told) = serde_json::from_str::<CallResult>(frame.payload.get()) {
                    self.settle(told.call);
                }
            }
            "host_request" => {
                if let Ok(request) = serde_json::from_str::<HostRequest>(frame.payload.get()) {
                    self.desk.begin(request);
                }
            }
            "host_cancel" => {
                if let Ok(cancel) = serde_json::from_str::<HostCancel>(frame.payload.get()) {
                    self.desk.cancel(cancel.request, &cancel.reason);
                }
            }
            _ => {}
        }
    }

    /// Takes the result of a call that has ended.
    fn settle(&self, number: u64) {
        let Some(started) = lock(&self.calls).remove(&number) else { return };
        match ffi::call_wait(started.on, number, 0) {
            // Not yet, whatever was told: put it back, and look again later.
            Ok(None) => {
                lock(&self.calls).insert(number, started);
            }
            Ok(Some(result)) => started.leave(Ok(result)),
            Err(err) => started.leave(Err(err)),
        }
    }

    /// Looks at every call. The library drops frames when too many wait to be read.
    fn settle_all(&self) {
        let numbers: Vec<u64> = lock(&self.calls).keys().copied().collect();
        numbers.into_iter().for_each(|number| self.settle(number));
    }

    /// Waits for what was started before the control stream ended, on a thread of its own.
    fn wait_for_all(&self) {
        let left: Vec<(u64, Started)> = lock(&self.calls).drain().collect();
        if left.is_empty() {
            return;
        }
        let left = Arc::new(Mutex::new(left));
        let its = Arc::clone(&left);
        if thread::Builder::new().name("a3s-calls".to_owned()).spawn(move || wait_for(&its)).is_err() {
            wait_for(&left); // without a thread to wait on, this one has to
        }
    }
}

fn wait_for(left: &Mutex<Vec<(u64, Started)>>) {
    for (number, started) in lock(left).drain(..) {
        let result = ffi::call_wait(started.on, number, -1);
        started
            .leave(result.and_then(|buf| {
                buf.ok_or_else(|| CodeError::new(codes::INTERNAL_ERROR, "call.wait", "a wait without limit gave nothing"))
            }));
    }
}

impl Started {
    fn leave(self, result: Result<Buf>) {
        if let Some(answer) = self.answer {
            answer.put(result);
        }
    }
}

/// The reactor's way to a control stream. Weak: an agent that nobody holds ends.
struct Ear {
    control: Weak<Control>,
    reader: Mutex<Reader>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct CallResult {
    call: u64,
}

#[derive(Deserialize)]
struct HostCancel {
    request: u64,
    #[serde(default)]
    reason: String,
}

impl Listener for Ear {
    fn ready(&self) -> Heard {
        let Some(control) = self.control.upgrade() else { return Heard::End };
        let mut reader = lock(&self.reader);
        loop {
            match reader.read(0) {
                Ok(Read::Batch(json)) => {
                    if let Ok(frames) = serde_json::from_slice::<Vec<Frame<'_>>>(json) {
                        frames.iter().for_each(|frame| guarded(|| control.frame(frame)));
                    }
                }
                Ok(Read::Nothing) => break,
                Ok(Read::End) | Err(_) => {
                    drop(reader);
                    control.end();
                    return Heard::End;
                }
            }
        }
        if lock(&control.calls).is_empty() {
            Heard::More
        } else {
            Heard::LookAgain
        }
    }

    fn look_again(&self) {
        if let Some(control) = self.control.upgrade() {
            control.settle_all();
        }
    }
}

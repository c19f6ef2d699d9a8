//! How late this program hears what another thread of it caused.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use a3s_code_core::{AgentEvent, Result, Tool};
use serde_json::{json, Value};

use crate::{in_loop, plain, quantiles, unmerged, Place};

const REST: Duration = Duration::from_millis(1);

/// When each piece was handed in, and how late it was heard.
#[derive(Clone)]
struct Stamps(Arc<Mutex<Vec<Instant>>>);

impl Stamps {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(vec![])))
    }

    fn set(&self) {
        self.0.lock().expect("the stamps").push(Instant::now());
    }

    fn late(&self, i: usize, now: Instant) -> f64 {
        now.duration_since(self.0.lock().expect("the stamps")[i])
            .as_secs_f64()
    }
}

/// From handing in a piece of tool output on one thread to the event on another, which blocks,
/// and which runs a loop; and from a write to a socket.
pub fn wake(place: &Place, n: usize) -> Result<()> {
    let agent = place.agent()?;
    let stamps = Arc::new(Mutex::new(Stamps::new()));
    let pace = {
        let stamps = Arc::clone(&stamps);
        move |_: Value, ctx: a3s_code_core::ToolContext| {
            let stamps = stamps.lock().expect("the stamps").clone();
            for i in 0..n {
                thread::sleep(REST);
                stamps.set();
                ctx.emit(format!("{i};"));
            }
            Ok("done")
        }
    };
    agent.register_tool(
        Tool::blocking("pace", "Paces.", json!({"type": "object"}), pace).read_only(),
    )?;
    let fresh = || {
        let new = Stamps::new();
        *stamps.lock().expect("the stamps") = new.clone();
        new
    };
    let note = |late: &mut Vec<f64>, event: AgentEvent, stamps: &Stamps| {
        let now = Instant::now();
        if let AgentEvent::ToolOutputDelta { delta, .. } = event {
            let i = delta.trim_end_matches(';').parse().expect("a number");
            late.push(stamps.late(i, now));
        }
    };

    let stamps = fresh();
    let mut late = vec![];
    let session = place.session(&agent, unmerged(false))?;
    let (events, _run) = session.stream("go on", None).wait()?;
    events.into_iter().for_each(|e| note(&mut late, e, &stamps));
    quantiles("sync", &mut late);

    let stamps = fresh();
    let mut late = vec![];
    in_loop(async {
        let session = place.session(&agent, unmerged(false).with_session_id("async"))?;
        let (mut events, _run) = session.stream("go on", None).await?;
        while let Some(event) = events.recv().await {
            note(&mut late, event, &stamps);
        }
        agent.close().await
    })?;
    quantiles("async", &mut late);
    plain::wake(place, n);
    plainly(n);
    Ok(())
}

/// The same from one end of a socket to the other.
fn plainly(n: usize) {
    let write = |mut to: UnixStream| {
        let stamps = Stamps::new();
        let kept = stamps.clone();
        let writer = thread::spawn(move || {
            for i in 0..n {
                thread::sleep(REST);
                stamps.set();
                to.write_all(&(i as u32).to_le_bytes()).expect("a write");
            }
        });
        (kept, writer)
    };
    let mut piece = [0; 4];

    let (mut mine, other) = UnixStream::pair().expect("a pair");
    let (stamps, writer) = write(other);
    let mut late = vec![];
    while mine.read_exact(&mut piece).is_ok() {
        late.push(stamps.late(u32::from_le_bytes(piece) as usize, Instant::now()));
    }
    writer.join().expect("the writer");
    quantiles("floor_sync", &mut late);

    let (mine, other) = UnixStream::pair().expect("a pair");
    let (stamps, writer) = write(other);
    let mut late = vec![];
    in_loop(async {
        mine.set_nonblocking(true).expect("a socket");
        let mine = tokio::net::UnixStream::from_std(mine).expect("a socket");
        let mut pieces = [0; 4096];
        loop {
            mine.readable().await.expect("a socket");
            match mine.try_read(&mut pieces) {
                Ok(0) => break,
                Ok(len) => late.extend(pieces[..len].chunks_exact(4).map(|p| {
                    let i = u32::from_le_bytes([p[0], p[1], p[2], p[3]]);
                    stamps.late(i as usize, Instant::now())
                })),
                Err(err) => assert_eq!(err.kind(), ErrorKind::WouldBlock),
            }
        }
    });
    writer.join().expect("the writer");
    quantiles("floor_async", &mut late);
}

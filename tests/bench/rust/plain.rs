//! What the safe crate does not show: the cost of a call, and the bytes of the events.

use std::ffi::{c_char, CStr};
use std::hint::black_box;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use liba3s_sys::{a3s_buf, Functions, A3S_E_BUFFER, A3S_E_WOKEN};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

use crate::{in_loop, median, quantiles, status, text, Place};

const CAP: usize = 128 << 10;
const REST: Duration = Duration::from_millis(1);

fn library() -> &'static Functions {
    liba3s_sys::load().expect("the library")
}

/// A text of the library, which frees it.
fn free(mut out: a3s_buf) {
    // SAFETY: the text came from the library and is not used any more.
    unsafe { (library().a3s_buf_free)(&mut out) };
}

/// What loading takes.
pub fn load() {
    let (rss, threads) = (status("VmRSS"), status("Threads"));
    let begin = Instant::now();
    let mut out = a3s_buf {
        ptr: ptr::null_mut(),
        len: 0,
    };
    // SAFETY: 0 asks for the whole library.
    assert!(unsafe { (library().a3s_stats)(0, &mut out) } >= 0);
    println!("load {:.9}", begin.elapsed().as_secs_f64());
    println!(
        "loaded {} {}",
        (status("VmRSS") - rss) * 1024.0,
        status("Threads") - threads
    );
    free(out);
}

/// Opens an agent, a session or a run, or starts a run.
fn open(
    function: unsafe extern "C" fn(u64, *const c_char, usize, *mut u64) -> i32,
    on: u64,
    request: &str,
) -> u64 {
    let mut handle = 0;
    // SAFETY: the request is a text of that length.
    let status = unsafe { function(on, request.as_ptr().cast(), request.len(), &mut handle) };
    assert!(status >= 0, "{request}: {status}");
    handle
}

fn agent(place: &Place) -> u64 {
    let request = json!({"acl_path": place.0.join("agent.acl"), "cwd": place.0}).to_string();
    let mut handle = 0;
    // SAFETY: as in open.
    let status =
        unsafe { (library().a3s_agent_open)(request.as_ptr().cast(), request.len(), &mut handle) };
    assert!(status >= 0, "{status}");
    handle
}

fn session(place: &Place, agent: u64) -> u64 {
    let request = json!({"workspace": text(&place.workspace()), "options": {
        "planning_mode": "disabled",
        "retention_limits": {"unbounded": true},
        "host_env": {"sequential_id_prefix": "run-0190a3f0-0000-7000-8000-000000000"},
    }});
    open(library().a3s_session_open, agent, &request.to_string())
}

fn close(handle: u64) {
    // SAFETY: the handle is not used any more.
    unsafe { (library().a3s_close)(handle, -1) };
}

/// What crossing into the library costs.
pub fn call(place: &Place, n: usize) {
    let f = library();
    let agent = agent(place);
    let session = session(place, agent);
    let stream = open(f.a3s_stream_open, session, "{}");
    let per_call = |name: &str, times: usize, call: &dyn Fn()| {
        let mut each = vec![];
        for _ in 0..51 {
            let begin = Instant::now();
            for _ in 0..times {
                call();
            }
            each.push(begin.elapsed().as_secs_f64() / times as f64);
        }
        quantiles(name, &mut each);
    };
    // SAFETY: it takes nothing.
    per_call("abi_version", n, &|| unsafe {
        black_box((f.a3s_abi_version)());
    });
    // SAFETY: the stream is open.
    per_call("stream_wake", n, &|| unsafe {
        black_box((f.a3s_stream_wake)(stream));
    });
    let method: &CStr = c"session.info";
    per_call("session_info", n / 10, &|| {
        let mut out = a3s_buf {
            ptr: ptr::null_mut(),
            len: 0,
        };
        // SAFETY: the session is open, and no parameters are none.
        unsafe { (f.a3s_call)(session, method.as_ptr(), ptr::null(), 0, 0, &mut out) };
        free(out);
    });
    close(agent);
}

/// All batches of a run that has ended, as bytes, and again with a parser that keeps nothing.
pub fn deliver(place: &Place, n: usize) {
    let f = library();
    let agent = agent(place);
    let run = open(
        f.a3s_run_start,
        session(place, agent),
        r#"{"prompt": "go on"}"#,
    );
    let mut out = a3s_buf {
        ptr: ptr::null_mut(),
        len: 0,
    };
    // SAFETY: the run's handle is open.
    assert!(unsafe { (f.a3s_run_wait)(run, -1, &mut out) } >= 0);
    free(out);
    let mut buf = vec![0_u8; CAP];
    let mut rate = |take: &dyn Fn(&[u8])| {
        let mut rates = vec![];
        for _ in 0..3 {
            let stream = open(f.a3s_stream_open, run, "{}");
            let begin = Instant::now();
            let mut needed = 0;
            loop {
                // SAFETY: the buffer is that large.
                let got = unsafe {
                    (f.a3s_stream_next)(stream, -1, 256, buf.as_mut_ptr().cast(), CAP, &mut needed)
                };
                let Ok(got) = usize::try_from(got) else {
                    // The terminal event holds the whole text again and is larger: it does not count.
                    assert_eq!(got, i64::from(A3S_E_BUFFER));
                    break;
                };
                take(&buf[..got]);
            }
            rates.push(n as f64 / begin.elapsed().as_secs_f64());
            close(stream);
        }
        median(&mut rates)
    };
    println!(
        "raw {:.1}",
        rate(&|batch| {
            black_box(batch);
        })
    );
    println!(
        "floor {:.1}",
        rate(&|batch| {
            black_box(serde_json::from_slice::<Vec<IgnoredAny>>(batch).expect("JSON"));
        })
    );
    close(agent);
}

/// A wake of a stream by one thread, heard by another that blocks, and by a loop.
pub fn wake(place: &Place, n: usize) {
    let f = library();
    let agent = agent(place);
    let stream = open(f.a3s_stream_open, session(place, agent), "{}");
    let next = |timeout| {
        let mut byte = [0_u8; 8];
        // SAFETY: the buffer is that large.
        unsafe {
            (f.a3s_stream_next)(
                stream,
                timeout,
                1,
                byte.as_mut_ptr().cast(),
                byte.len(),
                ptr::null_mut(),
            )
        }
    };
    let (sent, seen) = (AtomicI64::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    let now = || i64::try_from(start.elapsed().as_nanos()).expect("a short time");
    let pace = || {
        for i in 0..n {
            thread::sleep(REST);
            while seen.load(Ordering::Acquire) < i {
                thread::sleep(REST);
            }
            sent.store(now(), Ordering::Release);
            // SAFETY: the stream is open.
            unsafe { (f.a3s_stream_wake)(stream) };
        }
    };
    let mut late = vec![];
    let heard = |late: &mut Vec<f64>| {
        late.push((now() - sent.load(Ordering::Acquire)) as f64 / 1e9);
        seen.store(late.len(), Ordering::Release);
    };
    thread::scope(|scope| {
        scope.spawn(pace);
        while late.len() < n {
            if next(-1) == i64::from(A3S_E_WOKEN) {
                heard(&mut late);
            }
        }
    });
    quantiles("bare_sync", &mut late);
    late.clear();
    seen.store(0, Ordering::Release);
    // SAFETY: the stream is open.
    let fd = unsafe { (f.a3s_stream_fd)(stream) };
    // SAFETY: the descriptor lives as long as the stream, and this is a copy of it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) }
        .try_clone_to_owned()
        .expect("a descriptor");
    thread::scope(|scope| {
        scope.spawn(pace);
        in_loop(async {
            // SAFETY: an OwnedFd stays the same descriptor until it is dropped.
            let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }
                .expect("a descriptor");
            while late.len() < n {
                let mut ready = fd.readable().await.expect("readiness");
                while next(0) == i64::from(A3S_E_WOKEN) {
                    heard(&mut late);
                }
                ready.clear_ready();
            }
        });
    });
    quantiles("bare_async", &mut late);
    close(agent);
}

//! The only module with unsafe code: turns the functions of the library, and the few of the
//! operating system that the standard library lacks, into safe ones. Bytes in, bytes out; a
//! failing status becomes a [`CodeError`].

use std::ffi::{c_char, CStr};
use std::ops::Deref;
use std::os::fd::{BorrowedFd, OwnedFd};

use liba3s_sys::{a3s_buf, Functions, A3S_E_BUFFER, A3S_E_END, A3S_E_NOTFOUND, A3S_E_TIMEOUT, A3S_E_WOKEN, A3S_OK};

use crate::error::{CodeError, Result};

pub(crate) mod epoll;

/// An agent, a session, a run, a stream or a registration. A stale one is an error, never another object.
pub(crate) type Handle = u64;

/// A text of the library; freed when it is dropped.
pub(crate) struct Buf {
    raw: a3s_buf,
    lib: &'static Functions,
}

// SAFETY: the text belongs to this value alone, and any thread may free it.
unsafe impl Send for Buf {}
// SAFETY: a shared Buf can only be read.
unsafe impl Sync for Buf {}

impl Buf {
    fn empty(lib: &'static Functions) -> Self {
        Self { raw: a3s_buf { ptr: std::ptr::null_mut(), len: 0 }, lib }
    }
}

impl Deref for Buf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.raw.ptr.is_null() {
            return &[];
        }
        // SAFETY: the library filled in len bytes at ptr, and they stay until they are freed in drop.
        unsafe { std::slice::from_raw_parts(self.raw.ptr.cast::<u8>(), self.raw.len) }
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        // SAFETY: the buffer is the library's or empty, and it is freed once.
        unsafe { (self.lib.a3s_buf_free)(&mut self.raw) }
    }
}

fn library() -> Result<&'static Functions> {
    liba3s_sys::load().map_err(CodeError::from)
}

/// This thread's last failure.
fn last_error(lib: &'static Functions, status: i32) -> CodeError {
    let mut buf = Buf::empty(lib);
    // SAFETY: buf takes what the library gives and frees it.
    unsafe { (lib.a3s_last_error)(&mut buf.raw) };
    CodeError::from_library(&buf, status)
}

fn check(lib: &'static Functions, status: i32) -> Result<i32> {
    if status < 0 {
        Err(last_error(lib, status))
    } else {
        Ok(status)
    }
}

fn text(bytes: &[u8]) -> (*const c_char, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// One JSON object that names the library's build.
pub(crate) fn build_info() -> Result<String> {
    let lib = library()?;
    // SAFETY: takes nothing and gives a static C string.
    Ok(unsafe { CStr::from_ptr((lib.a3s_build_info)()) }.to_string_lossy().into_owned())
}

/// Gives foreign signal handlers what the library needs of them.
pub(crate) fn signals_repair() -> Result<()> {
    let lib = library()?;
    // SAFETY: takes nothing; may be called from any thread.
    check(lib, unsafe { (lib.a3s_signals_repair)() }).map(drop)
}

/// Counts what is alive below a handle; 0 is the whole library.
pub(crate) fn stats(handle: Handle) -> Result<Buf> {
    let lib = library()?;
    let mut out = Buf::empty(lib);
    // SAFETY: any number is a fine handle; out is filled or left empty.
    check(lib, unsafe { (lib.a3s_stats)(handle, &mut out.raw) })?;
    Ok(out)
}

/// Opens an agent; blocks.
pub(crate) fn agent_open(request: &[u8]) -> Result<Handle> {
    let (lib, mut out) = (library()?, 0);
    let (ptr, len) = text(request);
    // SAFETY: the request is borrowed for the call, out is a number.
    check(lib, unsafe { (lib.a3s_agent_open)(ptr, len, &mut out) })?;
    Ok(out)
}

/// Opens or resumes a session; blocks.
pub(crate) fn session_open(agent: Handle, request: &[u8]) -> Result<Handle> {
    let (lib, mut out) = (library()?, 0);
    let (ptr, len) = text(request);
    // SAFETY: as in agent_open.
    check(lib, unsafe { (lib.a3s_session_open)(agent, ptr, len, &mut out) })?;
    Ok(out)
}

/// Ends a handle whose failure to end interests nobody; waits at most `timeout_ms`.
pub(crate) fn close_quietly(handle: Handle, timeout_ms: i32) {
    if let Ok(lib) = library() {
        // SAFETY: any number is a fine handle.
        unsafe { (lib.a3s_close)(handle, timeout_ms) };
    }
}

/// Runs an operation and waits for it.
pub(crate) fn call(handle: Handle, method: &CStr, params: &[u8]) -> Result<Buf> {
    let lib = library()?;
    let mut out = Buf::empty(lib);
    let (ptr, len) = text(params);
    // SAFETY: the texts are borrowed for the call; out is filled or left empty.
    check(lib, unsafe { (lib.a3s_call)(handle, method.as_ptr(), ptr, len, 0, &mut out.raw) })?;
    Ok(out)
}

/// Starts an operation and gives its number.
pub(crate) fn call_start(handle: Handle, method: &CStr, params: &[u8]) -> Result<u64> {
    let (lib, mut out) = (library()?, 0);
    let (ptr, len) = text(params);
    // SAFETY: the texts are borrowed for the call, out is a number.
    check(lib, unsafe { (lib.a3s_call_start)(handle, method.as_ptr(), ptr, len, &mut out) })?;
    Ok(out)
}

/// Takes the result of a started operation; None if it still runs.
pub(crate) fn call_wait(handle: Handle, number: u64, timeout_ms: i32) -> Result<Option<Buf>> {
    let lib = library()?;
    let mut out = Buf::empty(lib);
    // SAFETY: out is filled or left empty.
    match unsafe { (lib.a3s_call_wait)(handle, number, timeout_ms, &mut out.raw) } {
        A3S_OK => Ok(Some(out)),
        status => match last_error(lib, status) {
            // A wait that ran out carries the wait's name, an operation that ran out its own.
            err if status == A3S_E_TIMEOUT && err.op() == "a3s_call_wait" => Ok(None),
            err => Err(err),
        },
    }
}

/// Asks a started operation to stop. One that has ended, or whose object has, needs no asking.
pub(crate) fn call_cancel(handle: Handle, number: u64) {
    if let Ok(lib) = library() {
        // SAFETY: any numbers are fine.
        unsafe { (lib.a3s_call_cancel)(handle, number) };
    }
}

/// Takes the lease and starts a run.
pub(crate) fn run_start(session: Handle, request: &[u8]) -> Result<Handle> {
    let (lib, mut out) = (library()?, 0);
    let (ptr, len) = text(request);
    // SAFETY: as in agent_open.
    check(lib, unsafe { (lib.a3s_run_start)(session, ptr, len, &mut out) })?;
    Ok(out)
}

/// Asks a run to stop.
pub(crate) fn run_cancel(run: Handle, reason: &[u8]) -> Result<()> {
    let lib = library()?;
    let (ptr, len) = text(reason);
    // SAFETY: the reason is borrowed for the call.
    check(lib, unsafe { (lib.a3s_run_cancel)(run, ptr, len) }).map(drop)
}

/// Waits for the end of a run and gives its result, or the error it ended with.
pub(crate) fn run_wait(run: Handle) -> Result<Buf> {
    let lib = library()?;
    let mut out = Buf::empty(lib);
    // SAFETY: out is filled or left empty.
    check(lib, unsafe { (lib.a3s_run_wait)(run, -1, &mut out.raw) })?;
    Ok(out)
}

/// Opens a stream over the events of a run, a session or an agent.
pub(crate) fn stream_open(source: Handle) -> Result<Handle> {
    let (lib, mut out) = (library()?, 0);
    // SAFETY: no options are NULL with length 0; out is a number.
    check(lib, unsafe { (lib.a3s_stream_open)(source, std::ptr::null(), 0, &mut out) })?;
    Ok(out)
}

/// A descriptor of our own that is readable while something is pending on the stream. It
/// outlives the stream, so that an event loop may let go of it later.
pub(crate) fn stream_fd(stream: Handle) -> Result<OwnedFd> {
    let lib = library()?;
    // SAFETY: any number is a fine handle.
    let fd = check(lib, unsafe { (lib.a3s_stream_fd)(stream) })?;
    // SAFETY: the caller owns the stream and closes it later, so the descriptor is open now.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fd.try_clone_to_owned().map_err(|e| CodeError::io("stream.fd", &e))
}

/// Lets tokio's event loop watch a descriptor.
#[cfg(feature = "tokio")]
pub(crate) fn watch(fd: OwnedFd) -> std::io::Result<tokio::io::unix::AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is moved in, so it is open as long as it is watched.
    Ok(unsafe { tokio::io::unix::AsyncFd::register_with_interest(fd, tokio::io::Interest::READABLE) }?)
}

/// Registers something that this program implements.
pub(crate) fn host_register(owner: Handle, kind: &CStr, spec: &[u8]) -> Result<Handle> {
    let (lib, mut out) = (library()?, 0);
    let (ptr, len) = text(spec);
    // SAFETY: the texts are borrowed for the call, out is a number.
    check(lib, unsafe { (lib.a3s_host_register)(owner, kind.as_ptr(), ptr, len, &mut out) })?;
    Ok(out)
}

/// Answers a host request; false if it was withdrawn or answered before.
pub(crate) fn host_reply(owner: Handle, request: u64, answer: &[u8]) -> Result<bool> {
    let lib = library()?;
    let (ptr, len) = text(answer);
    // SAFETY: the answer is borrowed for the call.
    counted(lib, unsafe { (lib.a3s_host_reply)(owner, request, ptr, len) })
}

/// Hands in a piece of an answer; false if the request is no longer open.
pub(crate) fn host_chunk(owner: Handle, request: u64, piece: &[u8]) -> Result<bool> {
    let lib = library()?;
    let (ptr, len) = text(piece);
    // SAFETY: the piece is borrowed for the call.
    counted(lib, unsafe { (lib.a3s_host_chunk)(owner, request, ptr, len) })
}

fn counted(lib: &'static Functions, status: i32) -> Result<bool> {
    if status == A3S_E_NOTFOUND {
        return Ok(false);
    }
    check(lib, status).map(|_| true)
}

/// What a read of a stream gave.
pub(crate) enum Read<'a> {
    /// One JSON array of events.
    Batch(&'a [u8]),
    /// Nothing came in time.
    Nothing,
    /// The last event has been read.
    End,
}

/// Reads a stream in batches into one buffer, which grows when an event needs it. Owns the
/// stream and ends it when it is dropped.
pub(crate) struct Reader {
    stream: Handle,
    buf: Vec<u8>,
}

/// Most events of one batch.
pub(crate) const BATCH: u32 = 64;

impl Reader {
    pub(crate) fn open(source: Handle, cap: usize) -> Result<Self> {
        Ok(Self { stream: stream_open(source)?, buf: vec![0; cap] })
    }

    pub(crate) fn fd(&self) -> Result<OwnedFd> {
        stream_fd(self.stream)
    }

    pub(crate) fn handle(&self) -> Handle {
        self.stream
    }

    /// The next batch; waits up to `timeout_ms` for a first event, below 0 without limit.
    pub(crate) fn read(&mut self, timeout_ms: i32) -> Result<Read<'_>> {
        let lib = library()?;
        loop {
            let mut needed = 0;
            let (ptr, cap) = (self.buf.as_mut_ptr().cast(), self.buf.len());
            // SAFETY: ptr takes cap bytes, and needed is a number; the buffer is borrowed for the call.
            let n = unsafe { (lib.a3s_stream_next)(self.stream, timeout_ms, BATCH, ptr, cap, &mut needed) };
            match i32::try_from(n).unwrap_or(i32::MAX) {
                1.. => return Ok(Read::Batch(&self.buf[..n as usize])),
                0 | A3S_E_WOKEN => return Ok(Read::Nothing),
                A3S_E_END => return Ok(Read::End),
                A3S_E_BUFFER if needed > cap => self.buf = vec![0; needed.next_power_of_two()],
                status => return Err(last_error(lib, status)),
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        close_quietly(self.stream, 0);
    }
}

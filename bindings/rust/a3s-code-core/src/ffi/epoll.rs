//! Waiting for many descriptors at once: the three functions of epoll(7).

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

#[repr(C)]
#[cfg_attr(target_arch = "x86_64", repr(packed))]
#[derive(Clone, Copy)]
struct Event {
    events: u32,
    id: u64,
}

unsafe extern "C" {
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(epoll: c_int, op: c_int, fd: c_int, event: *mut Event) -> c_int;
    fn epoll_wait(epoll: c_int, events: *mut Event, most: c_int, timeout_ms: c_int) -> c_int;
}

const CLOEXEC: c_int = 0o2000000;
const ADD: c_int = 1;
const DEL: c_int = 2;
const MOD: c_int = 3;
const IN: u32 = 1;
const ONESHOT: u32 = 1 << 30;

/// How a descriptor is watched.
#[derive(Clone, Copy)]
pub(crate) enum Watch {
    /// Not now.
    Off,
    /// Until it is readable once.
    Once,
    /// As long as it is readable.
    Always,
}

/// A set of watched descriptors. Any thread may change it while another waits.
pub(crate) struct Epoll {
    fd: OwnedFd,
    process: u32,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes a number.
        let fd = unsafe { epoll_create1(CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, process: std::process::id() })
    }

    /// A forked child shares the set with its parent and must leave it alone.
    fn ours(&self) -> bool {
        self.process == std::process::id()
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, id: u64, how: Watch) -> io::Result<()> {
        self.change(ADD, fd, id, how)
    }

    pub(crate) fn set(&self, fd: BorrowedFd<'_>, id: u64, how: Watch) -> io::Result<()> {
        self.change(MOD, fd, id, how)
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        // A descriptor that is not in the set any more needs no removing.
        let _ = self.change(DEL, fd, 0, Watch::Off);
    }

    fn change(&self, op: c_int, fd: BorrowedFd<'_>, id: u64, how: Watch) -> io::Result<()> {
        if !self.ours() {
            return Err(io::Error::other("the process was forked"));
        }
        let events = match how {
            Watch::Off => 0,
            Watch::Once => IN | ONESHOT,
            Watch::Always => IN,
        };
        let mut event = Event { events, id };
        // SAFETY: both descriptors are open, event lives for the call.
        match unsafe { epoll_ctl(self.fd.as_raw_fd(), op, fd.as_raw_fd(), &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Puts the ids of readable descriptors into `ready`; waits up to `timeout_ms`, below 0
    /// without limit.
    pub(crate) fn wait(&self, timeout_ms: i32, ready: &mut Vec<u64>) -> io::Result<()> {
        let mut events = [Event { events: 0, id: 0 }; 64];
        // SAFETY: events takes as many as its length says.
        let n = unsafe { epoll_wait(self.fd.as_raw_fd(), events.as_mut_ptr(), events.len() as c_int, timeout_ms) };
        ready.clear();
        if n < 0 {
            let err = io::Error::last_os_error();
            return if err.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(err) };
        }
        ready.extend(events[..n as usize].iter().map(|e| e.id));
        Ok(())
    }
}

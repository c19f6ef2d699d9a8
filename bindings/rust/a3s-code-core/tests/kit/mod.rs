//! A folder with a scripted agent, for tests.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use a3s_code_core::{Agent, AgentSession, PermissionPolicy, SessionOptions};

/// A folder that is gone in the end, with `turns.txt`, `agent.acl` and `workspace/`.
pub struct Place {
    pub dir: PathBuf,
}

impl Place {
    /// `script` is what the model says; see the grammar in runtime/model/script.
    pub fn new(script: &str) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let name = format!("a3s-rust-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("workspace")).expect("a folder");
        let dir = dir.canonicalize().expect("a folder");
        std::fs::write(dir.join("turns.txt"), script).expect("the script");
        let acl = "default_model = \"script/main\"\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n";
        std::fs::write(dir.join("agent.acl"), acl).expect("the configuration");
        Self { dir }
    }

    /// With a configuration of its own, and without a script.
    pub fn with_acl(acl: &str) -> Self {
        let place = Self::new("");
        std::fs::write(place.dir.join("agent.acl"), acl).expect("the configuration");
        place
    }

    pub fn acl(&self) -> String {
        self.dir.join("agent.acl").to_string_lossy().into_owned()
    }

    pub fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub fn agent(&self) -> Agent {
        Agent::open(self.acl()).expect("an agent")
    }

    /// A session in which everything is allowed.
    pub fn session(&self) -> AgentSession {
        self.session_with(SessionOptions::new())
    }

    pub fn session_with(&self, options: SessionOptions) -> AgentSession {
        let options = match options.permission_policy {
            Some(_) => options,
            None => options.with_permission_policy(PermissionPolicy::permissive()),
        };
        self.agent().session(self.workspace(), Some(options)).expect("a session")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Waits until nothing is alive in the library any more. For tests that run in a process of their
/// own.
pub fn nothing_is_left() {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let stats = a3s_code_core::stats().expect("the library");
        let alive = stats["handles"].as_object().expect("handles").values().any(|n| n != 0) || stats["closing"] != 0 || stats["calls"] != 0;
        if !alive {
            return;
        }
        assert!(Instant::now() < until, "still alive: {stats}");
        std::thread::sleep(Duration::from_millis(2)); // it ends in the background
    }
}

/// Waits for something that another thread brings about.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

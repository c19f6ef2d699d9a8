//! Where a session's files and records are.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use serde::{Serialize, Serializer};

use crate::agent::AgentInner;
use crate::sync::lock;

/// Where the files of a session are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkspaceBackend {
    /// A folder of this machine.
    Local {
        /// The folder; a relative path is relative to the current folder when a session is opened.
        root: PathBuf,
    },
    /// A workspace that this program registered with the agent.
    Host(HostWorkspaceBackend),
}

/// A workspace that this program registered with
/// [`Agent::register_workspace`](crate::Agent::register_workspace), by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostWorkspaceBackend {
    name: String,
}

impl HostWorkspaceBackend {
    /// The name it is registered under.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl From<HostWorkspaceBackend> for WorkspaceBackend {
    fn from(backend: HostWorkspaceBackend) -> Self {
        Self::Host(backend)
    }
}

/// Files, shell and git of a folder of this machine: the backend that a session has without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalWorkspaceBackend {
    root: PathBuf,
}

impl LocalWorkspaceBackend {
    /// The folder; a relative path is relative to the current folder when a session is opened.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl From<LocalWorkspaceBackend> for WorkspaceBackend {
    fn from(backend: LocalWorkspaceBackend) -> Self {
        Self::Local { root: backend.root }
    }
}

/// Where a session is kept beyond its object.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionStore {
    /// In files.
    File(FileSessionStore),
    /// In the memory of this process.
    Memory(MemorySessionStore),
    /// In a store that this program registered with the agent.
    Host(HostSessionStore),
}

/// A store that this program registered with
/// [`Agent::register_session_store`](crate::Agent::register_session_store), by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostSessionStore {
    name: String,
}

impl HostSessionStore {
    /// The name it is registered under.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl From<HostSessionStore> for SessionStore {
    fn from(store: HostSessionStore) -> Self {
        Self::Host(store)
    }
}

/// Keeps sessions in files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSessionStore {
    dir: PathBuf,
}

impl FileSessionStore {
    /// The folder, which is made when a session is opened; a relative path is relative to the
    /// current folder then.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }
}

impl From<FileSessionStore> for SessionStore {
    fn from(store: FileSessionStore) -> Self {
        Self::File(store)
    }
}

/// Keeps sessions in memory. Clones are the same store: save and resume with one of them. It is
/// gone with the last clone and the last session that uses it.
#[derive(Clone)]
pub struct MemorySessionStore(Arc<Memory>);

struct Memory {
    instance_id: String,
    /// Agents through which the library knows the store.
    agents: Mutex<Vec<Weak<AgentInner>>>,
}

impl MemorySessionStore {
    /// A new, empty store.
    pub fn new() -> Self {
        // Two hashers with keys of their own make a word that nobody else has.
        let word = || RandomState::new().build_hasher().finish();
        let instance_id = format!("{:016x}{:016x}", word(), word());
        Self(Arc::new(Memory { instance_id, agents: Mutex::default() }))
    }

    /// Remembers through whom the library knows the store.
    pub(crate) fn used_by(&self, agent: &Arc<AgentInner>) {
        let mut agents = lock(&self.0.agents);
        agents.retain(|a| a.strong_count() > 0);
        if !agents.iter().any(|a| a.as_ptr() == Arc::as_ptr(agent)) {
            agents.push(Arc::downgrade(agent));
        }
    }
}

impl Default for MemorySessionStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let agents = std::mem::take(&mut *lock(&self.agents));
        if let Some(agent) = agents.iter().find_map(Weak::upgrade) {
            agent.drop_memory_store(&self.instance_id);
        }
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemorySessionStore").field(&self.0.instance_id).finish()
    }
}

impl Serialize for MemorySessionStore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            instance_id: &'a str,
        }
        Wire { instance_id: &self.0.instance_id }.serialize(serializer)
    }
}

impl From<MemorySessionStore> for SessionStore {
    fn from(store: MemorySessionStore) -> Self {
        Self::Memory(store)
    }
}

impl From<&MemorySessionStore> for SessionStore {
    fn from(store: &MemorySessionStore) -> Self {
        Self::Memory(store.clone())
    }
}

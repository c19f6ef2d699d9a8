//! Opening an agent with more to say than its configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::agent::{Agent, AgentInner};
use crate::call::Call;
use crate::control::Control;
use crate::error::{CodeError, Result};
use crate::{ffi, wire};

/// The current folder, which completes relative paths.
pub(crate) fn cwd(op: &str) -> Result<String> {
    let dir = std::env::current_dir().map_err(|e| CodeError::io(op, &e))?;
    dir.into_os_string().into_string().map_err(|dir| CodeError::bad_value(op, format!("the current folder {dir:?} is not valid Unicode")))
}

/// Opens an agent with more to say than its configuration. See [`Agent::builder`].
#[derive(Clone, Default, Serialize)]
#[must_use = "nothing happens before this is opened"]
pub struct AgentBuilder {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acl_path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<ProcessLimits>,
}

/// Limits of the whole process: the first agent that names some sets them, and a later one that
/// names others is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProcessLimits {
    /// How much garbage the library's memory may grow by before it is collected, in percent; 100
    /// by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_percent: Option<u64>,
    /// Soft limit of the library's memory; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Threads that run the library's code at once; the number of cores by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
}

impl AgentBuilder {
    pub(crate) fn of(source: String) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self { acl_path: Some(path), ..Self::default() }
    }

    /// What `env("NAME")` in the configuration and the processes of tools may see, instead of the
    /// environment of this process.
    pub fn env<K: Into<String>, V: Into<String>>(mut self, env: impl IntoIterator<Item = (K, V)>) -> Self {
        self.env = Some(env.into_iter().map(|(k, v)| (k.into(), v.into())).collect());
        self
    }

    /// The folder that completes relative paths of the configuration, instead of the current one.
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// Limits of the whole process.
    pub fn limits(mut self, limits: ProcessLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Opens the agent.
    ///
    /// # Errors
    /// As [`Agent::new`].
    pub fn open(mut self) -> Call<Agent> {
        const OP: &str = "agent.open";
        // What is not text cannot travel as JSON, and no configuration can name it.
        self.env
            .get_or_insert_with(|| std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect());
        let request = match self.cwd {
            Some(_) => Ok(()),
            None => cwd(OP).map(|dir| self.cwd = Some(dir.into())),
        };
        let request = request.and_then(|()| wire::encode(OP, &self));
        Call::thread(move || {
            let handle = ffi::agent_open(&request?)?;
            Ok(Agent(Arc::new(AgentInner { handle, control: Control::new(handle) })))
        })
    }
}

// Without the environment, which may hold secrets.
impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("cwd", &self.cwd).field("limits", &self.limits).finish_non_exhaustive()
    }
}

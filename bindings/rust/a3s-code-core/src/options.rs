//! Options of a session: plain values that become JSON when a session is opened. They are
//! checked by the library, so that every language refuses the same things with the same words.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{CodeError, Result};
pub use crate::generated::options::SessionOptions;
pub use crate::stores::*;

/// Makes the options of the generated list: a field and a setter each.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $with:ident($given:ty),)*) => {
        /// What a session may do and how. What is None keeps the default of the agent or the
        /// library. Options are added over time: fill in the rest with `..SessionOptions::new()`.
        ///
        /// ```
        /// use a3s_code_core::{FileSessionStore, PermissionPolicy, SessionOptions};
        ///
        /// let options = SessionOptions::new()
        ///     .with_permission_policy(PermissionPolicy::strict().allow("read*").allow("grep*"))
        ///     .with_session_store(FileSessionStore::new(".a3s/sessions"))
        ///     .with_max_tool_rounds(20);
        /// assert_eq!(options.max_tool_rounds, Some(20));
        /// ```
        #[derive(Clone, Debug, Default)]
        pub struct SessionOptions {
            $($(#[$doc])* pub $name: Option<$type>,)*
            /// Options by name that this crate does not know, or of types it does not know.
            pub other: Map<String, Value>,
        }

        impl SessionOptions {
            $($(#[$doc])*
            #[must_use]
            pub fn $with(mut self, value: $given) -> Self {
                self.$name = Some(value.into());
                self
            })*

            /// Every option that is set, by its name.
            fn fields(&self) -> crate::error::Result<Map<String, Value>> {
                let mut all = Map::new();
                $(if let Some(value) = &self.$name {
                    all.insert(stringify!($name).to_owned(), crate::options::wire(stringify!($name), value)?);
                })*
                Ok(all)
            }

            pub(crate) fn to_wire(&self) -> crate::error::Result<Map<String, Value>> {
                let mut all = self.fields()?;
                all.extend(self.other.clone());
                Ok(all)
            }
        }
    };
}
pub(crate) use options;

impl SessionOptions {
    /// Options that are all unset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option by name, as JSON: for one that this crate does not know. A name that the
    /// library does not know either is refused when the session is opened.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.other.insert(name.into(), value.into());
        self
    }

    /// Keeps the session in files below `dir`.
    #[must_use]
    pub fn with_file_session_store(self, dir: impl Into<PathBuf>) -> Self {
        self.with_session_store(FileSessionStore::new(dir))
    }

    /// The store in memory, if that is where the session is kept.
    pub(crate) fn memory(&self) -> Option<&MemorySessionStore> {
        match &self.session_store {
            Some(SessionStore::Memory(store)) => Some(store),
            _ => None,
        }
    }
}

/// The JSON of an option. A number that JSON does not have would become null, which is unset.
pub(crate) fn wire<T: Serialize>(name: &str, value: &T) -> Result<Value> {
    let refuse = |words: String| {
        CodeError::new(
            crate::codes::SESSION_CONFIGURATION_ERROR,
            "session.open",
            format!("Invalid session configuration for '{name}': {words}"),
        )
        .with("reason", "bad_value")
        .with("field", name)
    };
    match serde_json::to_value(value) {
        Ok(Value::Null) => Err(refuse("must be a finite number".to_owned())),
        Ok(value) => Ok(value),
        Err(err) => Err(refuse(err.to_string())),
    }
}

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionDecision {
    /// The call runs.
    Allow,
    /// The call is refused.
    Deny,
    /// The host is asked; refused if nobody can be.
    #[default]
    Ask,
}

/// Which tool calls run. Rules are `Tool` or `Tool(pattern)`; deny before allow before ask
/// before the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionPolicy {
    /// Calls that run.
    pub allow: Vec<String>,
    /// Calls that are refused.
    pub deny: Vec<String>,
    /// Calls that the host is asked about.
    pub ask: Vec<String>,
    /// For calls that no rule names. Default: ask.
    pub default_decision: PermissionDecision,
    /// False allows everything. Default: true.
    pub enabled: bool,
}

impl Default for PermissionPolicy {
    fn default() -> Self {
        Self { allow: vec![], deny: vec![], ask: vec![], default_decision: PermissionDecision::Ask, enabled: true }
    }
}

impl PermissionPolicy {
    /// A policy without rules that asks.
    pub fn new() -> Self {
        Self::default()
    }

    /// A policy without rules that allows.
    pub fn permissive() -> Self {
        Self::new().with_default_decision(PermissionDecision::Allow)
    }

    /// A policy without rules that refuses.
    pub fn strict() -> Self {
        Self::new().with_default_decision(PermissionDecision::Deny)
    }

    /// Adds a rule: such calls run.
    #[must_use]
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.allow.push(rule.into());
        self
    }

    /// Adds a rule: such calls are refused.
    #[must_use]
    pub fn deny(mut self, rule: impl Into<String>) -> Self {
        self.deny.push(rule.into());
        self
    }

    /// Adds a rule: the host is asked about such calls.
    #[must_use]
    pub fn ask(mut self, rule: impl Into<String>) -> Self {
        self.ask.push(rule.into());
        self
    }

    /// Sets what is decided where no rule says.
    #[must_use]
    pub fn with_default_decision(mut self, decision: PermissionDecision) -> Self {
        self.default_decision = decision;
        self
    }
}

/// What happens when nobody answers a question in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutAction {
    /// The call is refused.
    #[default]
    Reject,
    /// The call runs.
    AutoApprove,
}

/// Whether and how the host is asked before a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfirmationPolicy {
    /// Whether calls may wait for an answer. Default: false.
    pub enabled: bool,
    /// How long, in milliseconds; 0 waits for ever. Default: 30000.
    pub default_timeout_ms: u64,
    /// What happens then. Default: reject.
    pub timeout_action: TimeoutAction,
    /// Lanes whose calls run without a question: `control`, `query`, `execute`, `generate`.
    pub yolo_lanes: Vec<String>,
}

impl Default for ConfirmationPolicy {
    fn default() -> Self {
        Self { enabled: false, default_timeout_ms: 30_000, timeout_action: TimeoutAction::Reject, yolo_lanes: vec![] }
    }
}

impl ConfirmationPolicy {
    /// A policy that asks, with the default time-out.
    pub fn enabled() -> Self {
        Self { enabled: true, ..Self::default() }
    }

    /// Sets how long an answer is waited for, and what happens then.
    #[must_use]
    pub fn with_timeout(mut self, ms: u64, action: TimeoutAction) -> Self {
        (self.default_timeout_ms, self.timeout_action) = (ms, action);
        self
    }
}

/// How much long output a session keeps beside its transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ArtifactStoreLimits {
    /// Number of artifacts; None keeps the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_artifacts: Option<u64>,
    /// Bytes of all of them together; None keeps the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Fixes ids and time, so that a session gives the same records every time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostEnvConfig {
    /// Ids become `<prefix>-0`, `<prefix>-1`, ...; None makes random ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential_id_prefix: Option<String>,
    /// Unix milliseconds that every clock shows; None is the real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_time_ms: Option<u64>,
}

/// What a session keeps of its runs in memory and in its snapshot. None keeps the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RetentionLimits {
    /// Takes all bounds away; those that are given then hold again.
    #[serde(skip_serializing_if = "crate::wire::is_false")]
    pub unbounded: bool,
    /// Runs. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs_retained: Option<u64>,
    /// Events of one run. Default: 2048.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events_per_run: Option<u64>,
    /// Bytes of the events of one run. Default: 8 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_event_bytes_per_run: Option<u64>,
    /// Summaries of tool executions. Default: 8192.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_trace_events: Option<u64>,
    /// Delegated tasks that have ended. Default: 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_terminal_subagent_tasks: Option<u64>,
}

//! How a play ends when it does not fit, and how it waits.

use std::fmt;

use a3s_code_core::CodeError;

/// How a play ends when it does not fit.
pub enum Fail {
    /// What the library refused or failed at.
    Code(CodeError),
    Words(String),
    /// This language lacks what the scenario needs.
    Lacking(#[allow(dead_code)] String),
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(err) => write!(f, "{err:?}"),
            Self::Words(words) | Self::Lacking(words) => f.write_str(words),
        }
    }
}

impl From<CodeError> for Fail {
    fn from(err: CodeError) -> Self {
        Self::Code(err)
    }
}

impl From<String> for Fail {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<std::io::Error> for Fail {
    fn from(err: std::io::Error) -> Self {
        Self::Words(err.to_string())
    }
}

impl From<serde_json::Error> for Fail {
    fn from(err: serde_json::Error) -> Self {
        Self::Words(err.to_string())
    }
}

/// How the play waits for the library.
#[derive(Clone)]
pub enum Mode {
    Threads,
    Tokio(tokio::runtime::Handle),
}

impl Mode {
    /// What is registered meanwhile runs in the runtime, if there is one.
    pub fn enter(&self) -> Option<tokio::runtime::EnterGuard<'_>> {
        match self {
            Self::Threads => None,
            Self::Tokio(handle) => Some(handle.enter()),
        }
    }
}

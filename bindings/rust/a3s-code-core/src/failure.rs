//! Why something that this program implements failed.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::CodeError;

/// Why a tool, a model, a store or another extension failed: a type and a message, and what a
/// program can tell of it. Every error converts into one with `?`: its type is then the name of
/// the error's type, and a [`CodeError`] or an [`io::Error`] brings its kind along.
///
/// ```
/// use std::time::Duration;
/// use a3s_code_core::ExtensionError;
///
/// let busy = ExtensionError::new("Overloaded", "too many requests").retry_after(Duration::from_secs(2));
/// let gone = ExtensionError::new("NoSuchPage", "there is no such page").with_kind("not_found");
/// # drop((busy, gone));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtensionError {
    #[serde(rename = "type")]
    name: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "crate::wire::is_false")]
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    details: Map<String, Value>,
}

impl ExtensionError {
    /// A failure with a type, such as `"NotFound"`, and words.
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into(), kind: None, retryable: false, retry_after_ms: None, details: Map::new() }
    }

    /// A failure in words.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::new("Error", message.to_string())
    }

    /// What a method answers that is not there.
    pub(crate) fn unsupported(what: impl fmt::Display) -> Self {
        Self::new("Unsupported", format!("{what} is not implemented")).with_kind("unsupported")
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn withdrawn() -> Self {
        Self::new("Cancelled", "nobody waits for this answer any more")
    }

    /// Sets the nature of the failure, in the words of [`codes::kinds`](crate::codes::kinds), such
    /// as `"not_found"`, `"conflict"` or `"denied"`.
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Says that the same request may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Says that the same request may succeed later, and when.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.retryable()
    }

    /// Adds what belongs to the kind, such as `expected` and `actual` of a conflict.
    #[must_use]
    pub fn with_detail(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }

    /// The type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The nature of the failure, if it is known.
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// What was added with [`with_detail`](Self::with_detail).
    pub fn details(&self) -> &Map<String, Value> {
        &self.details
    }
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

// Without being an error itself: else this and the identity would overlap.
impl<E: Error + 'static> From<E> for ExtensionError {
    fn from(err: E) -> Self {
        let name = std::any::type_name::<E>();
        let plain = name.split('<').next().unwrap_or(name);
        let failure = Self::new(plain.rsplit("::").next().unwrap_or(plain), err.to_string());
        let err: &(dyn Error + 'static) = &err;
        if let Some(err) = err.downcast_ref::<CodeError>() {
            return Self { kind: Some(err.kind().to_owned()), retryable: err.retryable(), details: err.details().clone(), ..failure };
        }
        match err.downcast_ref::<io::Error>().and_then(|err| kind_of(err.kind())) {
            Some(kind) => failure.with_kind(kind),
            None => failure,
        }
    }
}

fn kind_of(kind: io::ErrorKind) -> Option<&'static str> {
    use io::ErrorKind as K;
    Some(match kind {
        K::NotFound => "not_found",
        K::AlreadyExists => "exists",
        K::PermissionDenied => "denied",
        K::NotADirectory | K::IsADirectory | K::InvalidInput => "invalid",
        K::Unsupported => "unsupported",
        _ => return None,
    })
}

//! What the library refuses or fails at.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::generated::codes;

/// What operations give.
pub type Result<T, E = CodeError> = std::result::Result<T, E>;

/// Anything the library refuses or fails at.
///
/// Branch on [`code`](Self::code), never on the text: the text is for people.
///
/// ```
/// use a3s_code_core::{codes, CodeError};
///
/// fn advice(err: &CodeError) -> &str {
///     match err.code() {
///         codes::SESSION_BUSY => "wait for the run to end",
///         codes::CONFIG_ERROR => "look at the .acl file",
///         _ if err.retryable() => "try again later",
///         _ => "give up",
///     }
/// }
/// ```
#[derive(Clone, PartialEq)]
pub struct CodeError(Box<Object>);

/// The error object that every language sees.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Object {
    code: String,
    status: i32,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    op: String,
    message: String,
    retryable: bool,
    #[serde(deserialize_with = "crate::wire::or_default", skip_serializing_if = "Map::is_empty")]
    details: Map<String, Value>,
}

impl CodeError {
    /// Stable code of the contract, such as `"SESSION_BUSY"`; see [`codes`]. The set is open.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Nature of the failure, such as `"invalid"`, `"busy"` or `"provider"`.
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// Number of the C interface, below 0.
    pub fn status(&self) -> i32 {
        self.0.status
    }

    /// Operation that failed, such as `"session.save"`; empty if there is none.
    pub fn op(&self) -> &str {
        &self.0.op
    }

    /// Words for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the same call may succeed later, unchanged.
    pub fn retryable(&self) -> bool {
        self.0.retryable
    }

    /// Machine-readable extras; `reason`, `field`, `line` and `column` mean the same everywhere.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// The error in the calling thread's slot of the library.
    pub(crate) fn from_library(json: &[u8], status: i32) -> Self {
        match serde_json::from_slice::<Object>(json) {
            Ok(object) if !object.code.is_empty() => Self(Box::new(object)),
            _ => Self::new(codes::INTERNAL_ERROR, "", format!("the library returned status {status} without an error text")),
        }
    }

    /// An error that this crate finds itself, in the shape of the library's.
    pub(crate) fn new(code: &str, op: &str, message: impl Into<String>) -> Self {
        let (kind, status) = codes::TABLE.iter().find(|row| row.0 == code).map_or(("internal", -99), |row| (row.1, row.2));
        Self(Box::new(Object {
            code: code.to_owned(),
            status,
            kind: kind.to_owned(),
            op: op.to_owned(),
            message: message.into(),
            ..Object::default()
        }))
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.details.insert(key.to_owned(), value.into());
        self
    }

    /// A value that never reaches the library, because JSON cannot say it.
    pub(crate) fn bad_value(op: &str, message: impl Into<String>) -> Self {
        Self::new(codes::INVALID_REQUEST, op, message).with("reason", "bad_value")
    }

    pub(crate) fn io(op: &str, err: &io::Error) -> Self {
        Self::new(codes::IO_ERROR, op, format!("{op}: {err}"))
    }

    /// What the library sent cannot be read.
    pub(crate) fn unreadable(op: &str, err: &serde_json::Error) -> Self {
        Self::new(codes::SERIALIZATION_ERROR, op, format!("what the library sent cannot be read: {err}"))
    }

    /// The error that an `error` event carries.
    #[allow(clippy::too_many_arguments)] // as many as the object has fields
    pub(crate) fn from_event(
        code: &str,
        status: i64,
        kind: &str,
        op: &str,
        message: &str,
        retryable: bool,
        details: Map<String, Value>,
    ) -> Self {
        Self(Box::new(Object {
            code: code.to_owned(),
            status: i32::try_from(status).unwrap_or(-99),
            kind: kind.to_owned(),
            op: op.to_owned(),
            message: message.to_owned(),
            retryable,
            details,
        }))
    }
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("CodeError");
        s.field("code", &self.0.code).field("message", &self.0.message);
        if !self.0.op.is_empty() {
            s.field("op", &self.0.op);
        }
        if !self.0.details.is_empty() {
            s.field("details", &self.0.details);
        }
        s.finish_non_exhaustive()
    }
}

impl std::error::Error for CodeError {}

/// As the object `{code, status, kind, op, message, retryable, details}`.
impl Serialize for CodeError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// LIBRARY_NOT_FOUND or ABI_MISMATCH.
impl From<liba3s_sys::LoadError> for CodeError {
    fn from(err: liba3s_sys::LoadError) -> Self {
        if matches!(err, liba3s_sys::LoadError::Abi { .. }) {
            return Self::new(codes::ABI_MISMATCH, "library.load", err.to_string());
        }
        let mut out = Self::new("LIBRARY_NOT_FOUND", "library.load", err.to_string());
        (out.0.kind, out.0.status) = (codes::kinds::UNSUPPORTED.to_owned(), liba3s_sys::A3S_E_UNSUPPORTED);
        out
    }
}

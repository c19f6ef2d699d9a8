//! JSON on its way in and out of the library.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::codes;
use crate::error::{CodeError, Result};

/// The default for null: lists and maps of the library may be either.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Encodes a request.
pub(crate) fn encode<T: Serialize + ?Sized>(op: &str, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| CodeError::bad_value(op, format!("Invalid request: {e}")))
}

/// Decodes an answer.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| CodeError::unreadable("call", &e))
}

/// Decodes an answer that keeps parts of the text.
pub(crate) fn borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| CodeError::unreadable("call", &e))
}

/// Decodes the one value that an answer wraps.
pub(crate) fn field<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    let all: BTreeMap<String, &RawValue> = borrowed(bytes)?;
    let Some(value) = all.get(name) else {
        return Err(CodeError::new(codes::SERIALIZATION_ERROR, "call", format!("the library's answer has no {name:?}")));
    };
    decode(value.get().as_bytes())
}

/// As [`field`], for a list, which may be null.
pub(crate) fn list<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<Vec<T>> {
    field::<Option<Vec<T>>>(bytes, name).map(Option::unwrap_or_default)
}

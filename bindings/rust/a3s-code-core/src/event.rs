//! Events as a host sees them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::Map;

use crate::error::CodeError;
pub use crate::generated::events::{AgentEvent, AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION};

/// Makes the enum of events of the generated list, and how one is decoded once its type is
/// known.
macro_rules! events {
    ($($(#[$of_event:meta])* $wire:literal => $event:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })*) => {
        /// One event of a run. Types are an open set: what this crate does not know is
        /// [`Other`](Self::Other), with its payload.
        ///
        /// Events of more than two fields may get more; match them with `..`.
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(tag = "type", content = "payload")]
        #[non_exhaustive]
        pub enum AgentEvent {
            $($(#[$of_event])* #[serde(rename = $wire)] $event { $($(#[$of_field])* $field: $type,)* },)*
            /// An event of a newer library, or one whose payload is not as this crate knows it.
            #[serde(untagged)]
            Other {
                /// Its wire name.
                #[serde(rename = "type")]
                kind: String,
                /// Its payload as it came.
                payload: crate::event::Payload,
            },
        }

        impl AgentEvent {
            /// The wire name of the event's type, such as `"text_delta"`.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$event { .. } => $wire,)*
                    Self::Other { kind, .. } => kind,
                }
            }
        }

        /// The type of an event, as its name is read.
        pub(crate) enum Tag { $($event,)* Other(String) }

        impl Tag {
            pub(crate) fn of(name: &str) -> Self {
                match name { $($wire => Self::$event,)* _ => Self::Other(name.to_owned()) }
            }

            /// The fields of its payload that this crate knows.
            pub(crate) fn fields(&self) -> &'static [&'static str] {
                match self { $(Self::$event => &[$(stringify!($field),)*],)* Self::Other(_) => &[] }
            }
        }

        /// Decodes a payload whose type is known; one with an unknown field is an error.
        pub(crate) struct PayloadSeed(pub(crate) Tag);

        impl<'de> serde::de::DeserializeSeed<'de> for PayloadSeed {
            type Value = AgentEvent;

            fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<AgentEvent, D::Error> {
                use serde::Deserialize;
                match self.0 {
                    $(Tag::$event => {
                        #[derive(serde::Deserialize)]
                        #[serde(deny_unknown_fields)]
                        struct Fields { $($(#[$of_field])* $field: $type,)* }
                        let Fields { $($field,)* } = Fields::deserialize(d)?;
                        Ok(AgentEvent::$event { $($field,)* })
                    })*
                    Tag::Other(kind) => Ok(AgentEvent::Other { kind, payload: crate::event::Payload::deserialize(d)? }),
                }
            }
        }
    };
}
pub(crate) use events;

impl AgentEvent {
    /// Whether this is a run's last event.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::End { .. } | Self::Error { .. })
    }

    /// The error that an [`Error`](Self::Error) event carries; None for the others.
    pub fn to_error(&self) -> Option<CodeError> {
        match self {
            Self::Error { code, status, kind, op, message, retryable, details } => {
                let details = details.clone().unwrap_or_default();
                Some(CodeError::from_event(code, *status, kind, op.as_deref().unwrap_or(""), message, *retryable, details))
            }
            _ => None,
        }
    }

    /// How a stream tells that it broke off: no fact of the run, so without metadata.
    pub(crate) fn from_error(err: &CodeError) -> Self {
        Self::Error {
            code: err.code().to_owned(),
            status: err.status().into(),
            kind: err.kind().to_owned(),
            op: Some(err.op().to_owned()),
            message: err.message().to_owned(),
            retryable: err.retryable(),
            details: Some(err.details().clone()).filter(|d: &Map<_, _>| !d.is_empty()),
        }
    }
}

/// Any JSON, as the library wrote it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(Box<RawValue>);

impl From<&RawValue> for Payload {
    fn from(json: &RawValue) -> Self {
        Self(json.to_owned())
    }
}

impl Deref for Payload {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// An event with its place in a run (EventEnvelopeV1).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventEnvelope {
    /// The event.
    pub event: AgentEvent,
    /// Where a recorded event stands; None for what is not recorded.
    pub metadata: Option<EventMetadata>,
    /// The whole payload as it came, if a newer library put fields into it that the variant of
    /// [`event`](Self::event) does not have.
    pub raw: Option<Payload>,
}

/// As `{version, type, payload, metadata}`.
impl Serialize for EventEnvelope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            version: u32,
            #[serde(flatten)]
            event: &'a AgentEvent,
            #[serde(skip_serializing_if = "Option::is_none")]
            metadata: &'a Option<EventMetadata>,
        }
        #[derive(Serialize)]
        struct Whole<'a> {
            version: u32,
            r#type: &'a str,
            payload: &'a Payload,
            #[serde(skip_serializing_if = "Option::is_none")]
            metadata: &'a Option<EventMetadata>,
        }
        if let Some(payload) = &self.raw {
            return Whole { version: EVENT_ENVELOPE_V1_VERSION, r#type: self.event.kind(), payload, metadata: &self.metadata }
                .serialize(serializer);
        }
        Wire { version: EVENT_ENVELOPE_V1_VERSION, event: &self.event, metadata: &self.metadata }.serialize(serializer)
    }
}

/// From what [`Serialize`] gives, or the library; by serde_json. Another version is refused, an
/// unknown type and a payload that is not as expected are kept as [`AgentEvent::Other`].
impl<'de> Deserialize<'de> for EventEnvelope {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let mut events = crate::decode::list(&[&json]).map_err(serde::de::Error::custom)?;
        events.pop().ok_or_else(|| serde::de::Error::custom("no event"))
    }
}

/// The place of a recorded event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventMetadata {
    /// Id of the run.
    #[serde(serialize_with = "text")]
    pub run_id: Arc<str>,
    /// Id of the session.
    #[serde(serialize_with = "text")]
    pub session_id: Arc<str>,
    /// Starts at 0 in every run and rises by exactly 1.
    pub sequence: i64,
    /// Unix milliseconds; never falls within a run.
    pub timestamp_ms: i64,
}

fn text<S: serde::Serializer>(value: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value)
}

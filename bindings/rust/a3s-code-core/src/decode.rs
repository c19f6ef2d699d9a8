//! Decodes events.
//!
//! A batch is read in one pass: the library writes an event's type before its payload, so the
//! payload is decoded as what it is right away. If anything in a batch is not as this crate
//! knows it, the batch is read again event by event: a payload with more fields is kept beside
//! its event, and what cannot be decoded is kept as [`AgentEvent::Other`](crate::AgentEvent::Other).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{CodeError, Result};
use crate::event::{AgentEvent, EventEnvelope, EventMetadata, Payload, EVENT_ENVELOPE_V1_VERSION};
use crate::generated::events::{PayloadSeed, Tag};

/// Decodes events; keeps the ids it met, since those of a stream hardly ever change.
pub(crate) struct Decoder {
    run: Arc<str>,
    session: Arc<str>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        let none: Arc<str> = Arc::from("");
        Self { run: Arc::clone(&none), session: none }
    }

    /// Puts the events of one JSON array behind `into`.
    pub(crate) fn batch(&mut self, json: &[u8], into: &mut VecDeque<EventEnvelope>) -> Result<()> {
        let json = std::str::from_utf8(json).map_err(|e| CodeError::unreadable("stream.next", &serde_json::Error::custom(e)))?;
        let before = into.len();
        let mut d = serde_json::Deserializer::from_str(json);
        if Batch(self, into).deserialize(&mut d).is_ok() {
            return Ok(());
        }
        into.truncate(before);
        let each: Vec<&RawValue> = serde_json::from_str(json).map_err(|e| CodeError::unreadable("stream.next", &e))?;
        each.into_iter().try_for_each(|one| self.one(one, into))
    }

    /// Puts one event behind `into`; a payload that is not as expected is kept as it came.
    fn one(&mut self, json: &RawValue, into: &mut VecDeque<EventEnvelope>) -> Result<()> {
        let mut read = |how| Envelope { ids: self, how, into }.deserialize(&mut serde_json::Deserializer::from_str(json.get()));
        read(How::Exact).or_else(|_| read(How::Wider)).or_else(|_| read(How::Raw)).map_err(|e| CodeError::unreadable("event", &e))
    }
}

/// Decodes the kept events of a run.
pub(crate) fn list(json: &[&RawValue]) -> Result<Vec<EventEnvelope>> {
    let (mut decoder, mut events) = (Decoder::new(), VecDeque::with_capacity(json.len()));
    json.iter().try_for_each(|one| decoder.one(one, &mut events))?;
    Ok(events.into())
}

struct Batch<'a>(&'a mut Decoder, &'a mut VecDeque<EventEnvelope>);

impl<'de> DeserializeSeed<'de> for Batch<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Batch<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Envelope { ids: self.0, how: How::Exact, into: self.1 })?.is_some() {}
        Ok(())
    }
}

/// How a payload is read.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// It has the fields that this crate knows, and no others.
    Exact,
    /// It may have more, and is kept whole beside the event.
    Wider,
    /// Whatever it is, it is kept as it came.
    Raw,
}

/// A payload with more fields than this crate knows.
fn wider(tag: Tag, json: &RawValue) -> serde_json::Result<AgentEvent> {
    let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json.get())?;
    let known = tag.fields();
    fields.retain(|name, _| known.iter().any(|k| k.trim_start_matches("r#") == name));
    PayloadSeed(tag).deserialize(serde_json::Value::Object(fields))
}

/// Decodes one envelope. An event is large, so it is moved once, to where it stays.
struct Envelope<'a> {
    ids: &'a mut Decoder,
    how: How,
    into: &'a mut VecDeque<EventEnvelope>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Version,
    Type,
    Payload,
    Metadata,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for Envelope<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Envelope<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event envelope")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut tag, mut late, mut event, mut metadata, mut raw) = (None, None, None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Version => {
                    let version: u32 = map.next_value()?;
                    if version != EVENT_ENVELOPE_V1_VERSION {
                        return Err(A::Error::custom(format_args!("event envelope version {version}")));
                    }
                }
                Key::Type => tag = Some(map.next_value_seed(TagSeed(self.how == How::Raw))?),
                Key::Payload => match tag.take_if(|_| self.how != How::Wider) {
                    Some(tag) => event = Some(map.next_value_seed(PayloadSeed(tag))?),
                    None => late = Some(map.next_value::<&RawValue>()?),
                },
                Key::Metadata => metadata = map.next_value_seed(MetadataSeed(self.ids))?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if let (Some(tag), Some(json)) = (tag, late) {
            event = Some(if self.how == How::Wider {
                raw = Some(Payload::from(json));
                wider(tag, json).map_err(A::Error::custom)?
            } else {
                PayloadSeed(tag).deserialize(&mut serde_json::Deserializer::from_str(json.get())).map_err(A::Error::custom)?
            });
        }
        let event = event.ok_or_else(|| A::Error::custom("an event without type or payload"))?;
        self.into.push_back(EventEnvelope { event, metadata, raw });
        Ok(())
    }
}

struct TagSeed(bool);

impl<'de> DeserializeSeed<'de> for TagSeed {
    type Value = Tag;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Tag, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for TagSeed {
    type Value = Tag;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type of an event")
    }

    fn visit_str<E>(self, name: &str) -> Result<Tag, E> {
        Ok(if self.0 { Tag::Other(name.to_owned()) } else { Tag::of(name) })
    }
}

struct MetadataSeed<'a>(&'a mut Decoder);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Place {
    RunId,
    SessionId,
    Sequence,
    TimestampMs,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for MetadataSeed<'_> {
    type Value = Option<EventMetadata>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = Option<EventMetadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the place of an event")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut sequence, mut timestamp_ms) = (0, 0);
        while let Some(key) = map.next_key()? {
            match key {
                Place::RunId => map.next_value_seed(Id(&mut self.0.run))?,
                Place::SessionId => map.next_value_seed(Id(&mut self.0.session))?,
                Place::Sequence => sequence = map.next_value()?,
                Place::TimestampMs => timestamp_ms = map.next_value()?,
                Place::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let (run_id, session_id) = (Arc::clone(&self.0.run), Arc::clone(&self.0.session));
        Ok(Some(EventMetadata { run_id, session_id, sequence, timestamp_ms }))
    }
}

/// Reads an id; keeps the text it has if that is the same.
struct Id<'a>(&'a mut Arc<str>);

impl<'de> DeserializeSeed<'de> for Id<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Id<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E>(self, id: &str) -> Result<(), E> {
        if &**self.0 != id {
            *self.0 = Arc::from(id);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "decode_test.rs"]
mod tests;

//! What is decoded comes from outside: everything odd must be kept or refused, never break.

use std::collections::VecDeque;

use serde_json::json;

use super::*;
use crate::AgentEvent;

const DELTA: &str =
    r#"{"version":1,"type":"text_delta","payload":{"text":"a"},"metadata":{"run_id":"r","session_id":"s","sequence":3,"timestamp_ms":7}}"#;

fn batch(json: &str) -> Result<Vec<EventEnvelope>> {
    let mut events = VecDeque::new();
    Decoder::new().batch(json.as_bytes(), &mut events).map(|()| events.into())
}

fn one(json: &str) -> EventEnvelope {
    let mut all = batch(&format!("[{DELTA},{json},{DELTA}]")).unwrap_or_else(|e| panic!("{json}: {e:?}"));
    assert_eq!(all.len(), 3, "{json}");
    assert_eq!(all[0], all[2], "{json}: its neighbours are as they were");
    assert_eq!(all[0].event, AgentEvent::TextDelta { text: "a".into() });
    all.swap_remove(1)
}

#[test]
fn an_event_has_its_place() {
    let event = batch(&format!("[{DELTA}]")).unwrap().remove(0);
    let meta = event.metadata.unwrap();
    assert_eq!((&*meta.run_id, &*meta.session_id, meta.sequence, meta.timestamp_ms), ("r", "s", 3, 7));
    let next = DELTA.replace("\"r\"", "\"q\"");
    let all = batch(&format!("[{DELTA},{next},{DELTA}]")).unwrap();
    let runs: Vec<&str> = all.iter().map(|e| &*e.metadata.as_ref().unwrap().run_id).collect();
    assert_eq!(runs, ["r", "q", "r"]);
}

#[test]
fn unknown_fields_are_kept_beside_the_event() {
    for json in [
        r#"{"version":1,"type":"turn_start","payload":{"turn":2,"mood":{"a":[1.10,null]}}}"#,
        r#"{"version":1,"payload":{"turn":2,"mood":{"a":[1.10,null]}},"type":"turn_start"}"#,
    ] {
        let envelope = one(json);
        assert!(matches!(envelope.event, AgentEvent::TurnStart { turn: 2, .. }), "{envelope:?}");
        assert_eq!(envelope.raw.as_deref().map(RawValue::get), Some(r#"{"turn":2,"mood":{"a":[1.10,null]}}"#));
        let again = serde_json::to_string(&envelope).unwrap();
        assert_eq!(again, r#"{"version":1,"type":"turn_start","payload":{"turn":2,"mood":{"a":[1.10,null]}}}"#);
        assert_eq!(one(&again), envelope);
    }
    assert_eq!(one(r#"{"version":1,"type":"turn_start","payload":{"turn":2}}"#).raw, None);
}

#[test]
fn what_is_unknown_is_kept() {
    let tests = [
        // an unknown type, whatever its payload
        (
            r#"{"version":1,"type":"new_thing","payload":{"b":1.10,"a":[null,12345678901234567890]}}"#,
            "new_thing",
            r#"{"b":1.10,"a":[null,12345678901234567890]}"#,
        ),
        (r#"{"version":1,"type":"new_thing","payload":null}"#, "new_thing", "null"),
        (r#"{"version":1,"type":"new\u005fthing","payload":"x"}"#, "new_thing", r#""x""#),
        (r#"{"version":1,"type":"","payload":0}"#, "", "0"),
        // a known type whose payload is of another form
        (r#"{"version":1,"type":"turn_start","payload":{"turn":"one"}}"#, "turn_start", r#"{"turn":"one"}"#),
        (r#"{"version":1,"type":"tool_end","payload":5  }"#, "tool_end", "5"),
        (r#"{"version":1,"type":"agent_end","payload":{"text":"x","usage":5}}"#, "agent_end", r#"{"text":"x","usage":5}"#),
    ];
    for (json, kind, payload) in tests {
        let event = one(json).event;
        assert_eq!(event.kind(), kind, "{json}");
        let AgentEvent::Other { payload: kept, .. } = &event else { panic!("{json}: {event:?}") };
        assert_eq!(kept.get(), payload, "{json}");
    }
}

#[test]
fn what_is_more_or_less_or_elsewhere_is_fine() {
    let delta = |text: &str| AgentEvent::TextDelta { text: text.into() };
    let tests = [
        (r#"{"payload":{"text":"x"},"type":"text_delta","version":1}"#, delta("x")),
        (r#"{"version":1,"more":{"a":[1]},"type":"text_delta","payload":{"text":"x","more":1},"metadata":null}"#, delta("x")),
        (r#"{"version":1,"type":"text_delta","payload":{}}"#, delta("")),
        (r#"{"version":1,"type":"text_delta","payload":{"text":"\ud83d\ude00\n\"ä"}}"#, delta("😀\n\"ä")),
        (r#"{"version":1,"type":"context_resolving","payload":{"providers":null}}"#, AgentEvent::ContextResolving { providers: vec![] }),
        (r#"{"version":1,"type":"gap","payload":{"run_id":"r","from":1,"to":2}}"#, AgentEvent::Gap { run_id: "r".into(), from: 1, to: 2 }),
    ];
    for (json, want) in tests {
        let got = one(json);
        assert_eq!((got.event, got.metadata), (want, None), "{json}");
    }
    let odd = one(r#"{"version":1,"type":"text_delta","payload":{"text":"x"},"metadata":{"sequence":1,"more":{}}}"#);
    assert_eq!(odd.metadata.unwrap().sequence, 1);
}

#[test]
fn what_is_no_event_is_refused() {
    for json in [
        "",
        "{",
        "[",
        "[1]",
        "{}",
        "[{}]",
        "[\"x\"]",
        r#"[{"version":2,"type":"text_delta","payload":{"text":"a"}}]"#,
        r#"[{"version":1,"payload":{}}]"#,
        r#"[{"version":1,"type":"text_delta"}]"#,
        r#"[{"version":1,"type":7,"payload":{}}]"#,
    ] {
        let err = batch(json).expect_err(json);
        assert_eq!(err.code(), crate::codes::SERIALIZATION_ERROR, "{json}");
    }
    assert!(batch("[]").unwrap().is_empty());
    let mut events = VecDeque::new();
    assert!(Decoder::new().batch(b"[\"\xff\"]", &mut events).is_err() && events.is_empty());
}

/// Every event of the catalogue has a variant, and keeps its name and its fields.
#[test]
fn the_catalogue_is_known() {
    for kind in crate::AGENT_EVENT_TYPES_V1 {
        let event = one(&format!(r#"{{"version":1,"type":"{kind}","payload":{{}}}}"#)).event;
        assert_eq!(event.kind(), *kind);
        assert!(!matches!(event, AgentEvent::Other { .. }), "{kind}");
    }
}

#[test]
fn an_envelope_is_written_as_it_was_read() {
    let tests = [
        json!({"version": 1, "type": "agent_start", "payload": {"prompt": "go"}}),
        json!({"version": 1, "type": "confirmation_received", "payload": {"tool_id": "t", "approved": true, "reason": null}}),
        json!({"version": 1, "type": "tool_end", "payload": {"id": "i", "name": "n", "args": {"a": [1.5, null]}, "output": "o", "exit_code": 1,
            "metadata": {"x": 1}, "error_kind": {"type": "timeout", "duration_ms": 5}}}),
        json!({"version": 1, "type": "error", "payload": {"message": "m", "code": "C", "status": -4, "kind": "timeout", "op": "o", "retryable": true, "details": {"a": 1}}}),
        json!({"version": 1, "type": "unheard_of", "payload": [1, {"a": "b"}]}),
        json!({"version": 1, "type": "tool_start", "payload": {"id": "i", "name": "n"},
            "metadata": {"run_id": "r", "session_id": "s", "sequence": 0, "timestamp_ms": 5}}),
    ];
    for want in tests {
        assert_eq!(serde_json::to_value(one(&want.to_string())).unwrap(), want);
    }
}

/// Cutting and changing a batch at every byte gives events or an error.
#[test]
fn no_bytes_break_the_decoder() {
    let tool = r#"{"version":1,"type":"tool_end","payload":{"id":"i","name":"n","output":"\u00e4","exit_code":0,"metadata":{"a":{}}}}"#;
    let whole = format!("[{DELTA},{tool}]");
    for at in 0..whole.len() {
        let _ = batch(&whole[..at]);
        for with in [b'"', b'{', b'}', b'[', b'0', b'\\', 0, 0xff] {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] = with;
            let mut events = VecDeque::new();
            if Decoder::new().batch(&bytes, &mut events).is_err() {
                continue;
            }
            assert!(events.len() <= 2);
        }
    }
}

/// What is written can be read by itself, also from a value.
#[test]
fn an_envelope_is_read_by_itself() {
    let event: EventEnvelope = serde_json::from_str(DELTA).unwrap();
    assert_eq!(event, one(DELTA));
    let written = serde_json::to_value(&event).unwrap();
    assert_eq!(serde_json::from_value::<EventEnvelope>(written).unwrap(), event);
    for wrong in [DELTA.replace(":1,", ":2,"), "{}".into(), "5".into(), DELTA.replace("\"type\"", "\"kind\"")] {
        assert!(serde_json::from_str::<EventEnvelope>(&wrong).is_err(), "{wrong}");
    }
}

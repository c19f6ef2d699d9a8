//! How what came is compared with what a scenario wants.

use regex::Regex;
use serde_json::{Map, Value};

use crate::scenario::cut;

/// Which fields of an event its line names by place.
fn positional(kind: &str) -> &'static [&'static str] {
    match kind {
        "agent_start" => &["prompt"],
        "turn_start" | "turn_end" => &["turn"],
        "text_delta" | "reasoning_delta" | "agent_end" => &["text"],
        "tool_start" | "tool_execution_start" | "tool_end" => &["name"],
        "tool_output_delta" => &["name", "delta"],
        "tool_input_delta" => &["delta"],
        "error" => &["code"],
        "confirmation_required" | "permission_denied" => &["tool_name"],
        "confirmation_timeout" => &["action_taken"],
        "confirmation_received" => &["approved"],
        "persistence_failed" => &["operation"],
        "budget_threshold_hit" => &["resource", "kind"],
        _ => &[],
    }
}

/// One line of want/events, or what stands behind a code in want/error.
pub struct Facts {
    pub line: String,
    pub name: String,
    places: Vec<Value>,
    equal: Vec<(String, Value)>,
    matching: Vec<(String, Regex)>,
}

impl Facts {
    pub fn parse(line: &str) -> Result<Self, String> {
        let key = Regex::new(r"^([A-Za-z_][A-Za-z0-9_.]*)([=~])").expect("a regular expression");
        let (name, mut rest) = cut(line.trim());
        let mut facts = Self { line: line.to_owned(), name: name.to_owned(), places: vec![], equal: vec![], matching: vec![] };
        loop {
            rest = rest.trim_start_matches(' ');
            if rest.is_empty() {
                return Ok(facts);
            }
            let found = key.captures(rest);
            let value;
            (value, rest) = value_at(&rest[found.as_ref().map_or(0, |c| c[0].len())..]).map_err(|e| format!("{line:?}: {e}"))?;
            match found {
                None => facts.places.push(value),
                Some(c) if &c[2] == "=" => facts.equal.push((c[1].to_owned(), value)),
                Some(c) => {
                    let pattern = Regex::new(value.as_str().unwrap_or("")).map_err(|e| format!("{line:?}: {e}"))?;
                    facts.matching.push((c[1].to_owned(), pattern));
                }
            }
        }
    }

    pub fn fits(&self, object: &Value, places: &[&str]) -> bool {
        self.places.len() <= places.len()
            && self.places.iter().zip(places).all(|(v, p)| !object[p].is_null() && word(&object[p]) == word(v))
            && self.equal.iter().all(|(k, v)| diff(part(object, k), v, "").is_none())
            && self.matching.iter().all(|(k, re)| part(object, k).as_str().is_some_and(|s| re.is_match(s)))
    }

    pub fn fits_event(&self, event: &Value) -> bool {
        event["type"] == self.name.as_str() && self.fits(&event["payload"], positional(&self.name))
    }
}

/// A JSON value, or a bare word, from the start of text, and what follows it.
fn value_at(text: &str) -> Result<(Value, &str), String> {
    if text.starts_with(['"', '[', '{']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next().ok_or("no value")?.map_err(|e| e.to_string())?;
        return Ok((value, &text[values.byte_offset()..]));
    }
    let (word, rest) = cut(text);
    Ok((serde_json::from_str(word).unwrap_or_else(|_| word.into()), rest))
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a dotted key leads to.
pub fn part<'a>(object: &'a Value, key: &str) -> &'a Value {
    match (object.get(key), key.split_once('.')) {
        (Some(value), _) => value,
        (None, Some((head, tail))) => part(&object[head], tail),
        _ => &Value::Null,
    }
}

/// Where got lacks what want names.
pub fn diff(got: &Value, want: &Value, at: &str) -> Option<String> {
    let told = |what: String| Some(format!("{at} is {}, want {what}", short(got)));
    match want {
        Value::Object(map) if map.len() == 1 && map.keys().all(|k| k.starts_with('$')) => {
            let (op, arg) = map.iter().next().expect("one");
            if operator(op, arg, got) {
                None
            } else {
                told(format!("{op} {arg}"))
            }
        }
        Value::Object(map) => {
            let Value::Object(have) = got else { return told("an object".into()) };
            let null = Value::Null;
            map.iter().find_map(|(k, v)| diff(have.get(k).unwrap_or(&null), v, &format!("{at}.{k}")))
        }
        Value::Array(items) => match got.as_array() {
            Some(have) if have.len() == items.len() => (0..items.len()).find_map(|i| diff(&have[i], &items[i], &format!("{at}[{i}]"))),
            _ => told(format!("{} items", items.len())),
        },
        Value::Number(n) if got.as_f64() == n.as_f64() => None,
        _ if got == want => None,
        _ => told(want.to_string()),
    }
}

fn operator(op: &str, arg: &Value, got: &Value) -> bool {
    match op {
        "$absent" => got.is_null(),
        "$match" => Regex::new(arg.as_str().unwrap_or("")).is_ok_and(|re| got.as_str().is_some_and(|s| re.is_match(s))),
        "$above" => got.as_f64().zip(arg.as_f64()).is_some_and(|(g, a)| g > a),
        "$has" | "$lacks" => {
            let (Some(have), Some(items)) = (got.as_array(), arg.as_array()) else { return false };
            items.iter().all(|item| have.iter().any(|g| diff(g, item, "").is_none()) == (op == "$has"))
        }
        _ => false,
    }
}

pub fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(1500) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// Joins neighbouring deltas of one kind and tool.
pub fn joined(events: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for event in events {
        let grows = match event["type"].as_str().unwrap_or("") {
            "text_delta" | "reasoning_delta" => "text",
            "tool_input_delta" | "tool_output_delta" => "delta",
            _ => "",
        };
        match out.last_mut() {
            Some(last) if !grows.is_empty() && last["type"] == event["type"] && last["payload"]["id"] == event["payload"]["id"] => {
                let text = format!("{}{}", word(&last["payload"][grows]), word(&event["payload"][grows]));
                last["payload"][grows] = text.into();
            }
            _ => out.push(event.clone()),
        }
    }
    out
}

/// Checks events against the lines of want/events.
pub fn compare(events: &[Value], text: &str) -> Result<(), String> {
    let lines =
        text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).map(Facts::parse).collect::<Result<Vec<_>, _>>()?;
    let mut furthest = (0, 0);
    if follow(events, &lines, 0, 0, &mut furthest) {
        return Ok(());
    }
    let wanted = lines.get(furthest.0).map_or("the end", |f| f.line.as_str());
    let all: Vec<String> = events.iter().map(|e| format!("  {} {}", word(&e["type"]), short(&e["payload"]))).collect();
    Err(format!("want/events: from event {} on there is no {wanted}\n{}", furthest.1, all.join("\n")))
}

fn follow(events: &[Value], lines: &[Facts], i: usize, j: usize, furthest: &mut (usize, usize)) -> bool {
    *furthest = (*furthest).max((j, i));
    match lines.get(j) {
        None => i == events.len(),
        Some(line) if line.name == "..." => (i..=events.len()).any(|k| follow(events, lines, k, j + 1, furthest)),
        Some(line) => i < events.len() && line.fits_event(&events[i]) && follow(events, lines, i + 1, j + 1, furthest),
    }
}

/// The object behind a value, or an empty one.
pub fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

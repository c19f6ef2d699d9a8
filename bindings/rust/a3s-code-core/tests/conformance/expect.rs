//! What a scenario wants at its end, and what holds for every run.

use a3s_code_core::{AgentResult, EventEnvelope};
use serde_json::{json, Value};

use crate::compare::{compare, joined, object, short, Facts};
use crate::fail::Fail;
use crate::look::equal;
use crate::play::Play;
use crate::scenario::{held, VIEWS};

impl Play<'_> {
    pub fn expect_error(&self, ended: Result<(), Fail>) -> Result<(), Fail> {
        let wanted = self.section("want/error").unwrap_or_default();
        let wanted = wanted.trim();
        match ended {
            Err(Fail::Code(err)) if !wanted.is_empty() => {
                let got = serde_json::to_value(&err)?;
                if Facts::parse(&format!("error {wanted}"))?.fits(&got, &["code"]) {
                    return Ok(());
                }
                Err(Fail::Words(format!("failed with {got}, want {wanted}")))
            }
            Ok(()) if !wanted.is_empty() => Err(Fail::Words(format!("nothing failed, want {wanted}"))),
            ended => ended,
        }
    }

    pub fn expect_rest(&mut self) -> Result<(), Fail> {
        if let Some(text) = self.section("want/events") {
            compare(&joined(&self.events), &text)?;
        }
        let want = self.json("want/result.json")?;
        if !want.is_null() {
            let results = self.stage.results.lock().expect("no panic");
            let got = if want.is_array() { json!(*results) } else { results.last().cloned().unwrap_or_default() };
            equal(&got, &want, "result")?;
        }
        for name in VIEWS {
            if let Some(text) = self.section(&format!("want/{name}.json")) {
                self.check(&format!("{name} {text}"))?;
            }
        }
        let mut files = object(&self.json("want/files.json")?);
        for name in self.scenario.sections.keys() {
            if let Some(path) = name.strip_prefix("want/workspace/") {
                let text = self.section(name).unwrap_or_default();
                files.insert(path.to_owned(), if text.is_empty() { Value::Null } else { text.into() });
            }
        }
        for (path, want) in files {
            let got = held(&self.workspace.join(&path));
            if got != want {
                return Err(Fail::Words(format!("file {path} is {}, want {}", short(&got), short(&want))));
            }
        }
        Ok(())
    }

    pub fn check(&self, rest: &str) -> Result<(), Fail> {
        self.look().check(rest)
    }

    /// Checks what holds for every run, and keeps its events.
    pub fn ended(&mut self, run: &[EventEnvelope]) -> Result<(), Fail> {
        for event in run {
            self.events.push(serde_json::to_value(event)?);
        }
        let wrong = |what: String| Err(Fail::Words(what));
        let Some(first) = run.first().and_then(|e| e.metadata.clone()) else { return wrong("a run without events".into()) };
        let mut before = 0;
        for (i, e) in run.iter().enumerate() {
            let Some(meta) = &e.metadata else { return wrong(format!("event {i} has no place: {:?}", e.event)) };
            let fine = meta.sequence == i as i64
                && meta.timestamp_ms >= before
                && meta.run_id == first.run_id
                && *meta.session_id == *self.session().session_id();
            if !fine || e.event.is_terminal() != (i + 1 == run.len()) {
                return wrong(format!("event {i} of {} is out of place: {e:?}", run.len()));
            }
            before = meta.timestamp_ms;
        }
        let kept = self.go(self.session().run_events(&first.run_id))?;
        if kept != run && kept.len() >= run.len() {
            return wrong(format!("the recorded events differ from those told: {kept:?}"));
            // fewer: retention
        }
        let status = match run[run.len() - 1].event.to_error() {
            None => "completed",
            Some(err) if err.code() == "CANCELLED" => "cancelled",
            Some(_) => "failed",
        };
        if let Some(snapshot) = self.go(self.session().run_snapshot(&first.run_id))? {
            if snapshot.status != status || snapshot.event_count != run.len() as i64 {
                return wrong(format!("after {} events, with {status}, the run is {snapshot:?}", run.len()));
            }
        }
        match self.go(self.session().current_run())? {
            None => Ok(()),
            Some(run) => wrong(format!("a run is still active after the last event: {run:?}")),
        }
    }
}

/// The result in the form of the other languages.
pub fn flat(result: &AgentResult) -> Result<Value, Fail> {
    let mut all = object(&serde_json::to_value(result)?);
    let usage = all.remove("usage").unwrap_or_default();
    all.extend(object(&usage));
    Ok(Value::Object(all))
}

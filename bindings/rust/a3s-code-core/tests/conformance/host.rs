//! Tools of the host, as a scenario describes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use a3s_code_core::{Agent, Tool, ToolContext, ToolFailure, ToolOutput};
use serde_json::{json, Value};

use crate::compare::object;
use crate::fail::Fail;
use crate::run::PATIENCE;

/// Counts calls and gathers what is wrong with them.
#[derive(Default)]
pub struct Desk {
    calls: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

pub type Shared = Arc<Mutex<Desk>>;

/// Registers one tool.
pub fn register(agent: &Agent, spec: &Value, desk: &Shared) -> Result<(), Fail> {
    let text = |key: &str| spec[key].as_str().unwrap_or("").to_owned();
    if spec["answer"]["garbage"] == true || spec["answer"]["twice"] == true {
        return Err(Fail::Lacking("a tool gives one answer, of the right type".into()));
    }
    let (answer, name, desk) = (spec["answer"].clone(), text("name"), Arc::clone(desk));
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let mut tool = Tool::with_schema::<Value>(text("name"), text("description"), schema, move |args: Value, context: ToolContext| {
        let (answer, name, desk) = (answer.clone(), name.clone(), Arc::clone(&desk));
        async move { serve(&answer, &name, &desk, &args, &context).await }
    });
    if spec["read_only"] == true {
        tool = tool.read_only();
    }
    if let Some(ms) = spec["timeout_ms"].as_u64() {
        tool = tool.timeout(Duration::from_millis(ms));
    }
    Ok(agent.register_tool(tool)?)
}

async fn serve(answer: &Value, name: &str, desk: &Shared, args: &Value, context: &ToolContext) -> Result<ToolOutput, ToolFailure> {
    *desk.lock().expect("no panic").calls.entry(name.to_owned()).or_default() += 1;
    for chunk in answer["chunks"].as_array().into_iter().flatten() {
        context.emit(chunk.as_str().unwrap_or(""));
    }
    if answer["wait"] == true {
        let begun = Instant::now();
        context.cancelled().await;
        let reason = context.reason();
        let wanted = answer["withdrawn"].as_str();
        if begun.elapsed() > PATIENCE || reason.is_none() || wanted.is_some_and(|w| reason.as_deref() != Some(w)) {
            desk.lock().expect("no panic").wrong.push(format!("{name}: withdrawn because {reason:?}"));
        }
    }
    if let Some(error) = answer.get("error") {
        return Err(ToolFailure::new(error["type"].as_str().unwrap_or(""), error["message"].as_str().unwrap_or("")));
    }
    let mut output = ToolOutput::new(answer["output"].as_str().or(args["text"].as_str()).unwrap_or(""));
    output = output.with_exit_code(answer["exit_code"].as_i64().unwrap_or(0));
    if answer.get("metadata").is_some() {
        output = output.with_metadata(object(&answer["metadata"]));
    }
    Ok(output)
}

/// Says what went wrong with the tools.
pub fn check(desk: &Shared, specs: &[Value]) -> Result<(), Fail> {
    let desk = desk.lock().expect("no panic");
    if let Some(wrong) = desk.wrong.first() {
        return Err(Fail::Words(wrong.clone()));
    }
    for spec in specs {
        let (name, want) = (spec["name"].as_str().unwrap_or(""), spec["calls"].as_u64());
        let got = desk.calls.get(name).copied().unwrap_or(0);
        if want.is_some_and(|want| want != got) {
            return Err(Fail::Words(format!("host tool {name} was called {got} times, want {want:?}")));
        }
    }
    Ok(())
}

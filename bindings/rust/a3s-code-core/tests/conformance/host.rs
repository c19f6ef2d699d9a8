//! The host's side of a play: its tools, and its extensions of any kind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use a3s_code_core::{Agent, AgentSession, Context, ExtensionError, Handlers, Registration, Tool, ToolContext, ToolOutput};
use serde::Serialize;
use serde_json::{json, Map, Value};

use crate::compare::object;
use crate::fail::{Fail, Mode};
use crate::look::Stage;
use crate::run::PATIENCE;

/// What one agent of a play supplies.
pub struct Host {
    stage: Arc<Stage>,
    agent: Agent,
    counts: Mutex<Counts>,
    news: Condvar,
}

#[derive(Default)]
struct Counts {
    wanted: BTreeMap<String, u64>,
    asked: BTreeMap<String, u64>,
    busy: usize,
}

impl Host {
    pub fn new(stage: &Arc<Stage>, agent: &Agent) -> Arc<Self> {
        Arc::new(Self { stage: Arc::clone(stage), agent: agent.clone(), counts: Mutex::default(), news: Condvar::new() })
    }

    /// Registers one tool of host_tools.json.
    pub fn tool(self: &Arc<Self>, agent: &Agent, spec: &Value) -> Result<(), Fail> {
        let answer = spec["answer"].clone();
        let text = |key: &str| spec[key].as_str().unwrap_or("").to_owned();
        let name = text("name");
        self.want(&name, &spec["calls"]);
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"], "additionalProperties": false });
        let host = Arc::clone(self);
        if answer["garbage"] == true {
            let spec =
                json!({ "name": name, "description": text("description"), "parameters": schema, "read_only": spec["read_only"] == true });
            let handlers = Handlers::new().on("call", move |_: Value, context: Context| {
                host.asked(context.name());
                host.done();
                async { Ok(json!({ "output": 5 })) }
            });
            agent.register_extension("tool", spec, handlers)?;
            return Ok(());
        }
        let mut tool = Tool::with_schema::<Value>(name, text("description"), schema, move |args: Value, context: ToolContext| {
            let (answer, host) = (answer.clone(), Arc::clone(&host));
            async move {
                host.asked(context.tool_name());
                let given = tool_answer(&host, &answer, &args, &context).await;
                host.done();
                given
            }
        });
        if spec["read_only"] == true {
            tool = tool.read_only();
        }
        if let Some(ms) = spec["timeout_ms"].as_u64() {
            tool = tool.timeout(std::time::Duration::from_millis(ms));
        }
        agent.register_tool(tool)?;
        Ok(())
    }

    /// Registers one extension of host.json.
    pub fn extension(self: &Arc<Self>, owner: Owner<'_>, entry: &Value) -> Result<(), Fail> {
        let (kind, name) = (entry["kind"].as_str().unwrap_or(""), entry["spec"]["name"].as_str().unwrap_or(""));
        let mut handlers = Handlers::new();
        for op in operations(kind)? {
            let answers = entry["answers"][&op].as_array().cloned().unwrap_or_default();
            let what = format!("{kind} {name} {op}");
            self.want(&what, &entry["calls"][&op]);
            let host = Arc::clone(self);
            let next = move || {
                let n = host.asked(&what);
                (Arc::clone(&host), what.clone(), answers.get(n.min(answers.len().max(1)) - 1).cloned())
            };
            handlers = match &self.stage.mode {
                Mode::Threads => handlers.on_blocking(op, move |_: Value, context: Context| {
                    let (host, what, answer) = next();
                    let given = host.begin(&what, answer.as_ref(), &context);
                    let given = given.and_then(|()| futures::executor::block_on(host.end(&what, answer.as_ref(), &context)));
                    host.done();
                    given
                }),
                Mode::Tokio(_) => handlers.on(op, move |_: Value, context: Context| {
                    let (host, what, answer) = next();
                    async move {
                        // What the host does first may wait, and the runtime must not.
                        let (its, words, first, about) = (Arc::clone(&host), what.clone(), answer.clone(), context.clone());
                        let begun = tokio::task::spawn_blocking(move || its.begin(&words, first.as_ref(), &about)).await;
                        let given = match begun.unwrap_or_else(|e| Err(e.into())) {
                            Ok(()) => host.end(&what, answer.as_ref(), &context).await,
                            Err(err) => Err(err),
                        };
                        host.done();
                        given
                    }
                }),
            };
        }
        owner.register(kind, entry["spec"].clone(), handlers)?;
        Ok(())
    }

    /// What comes before the end of an answer: steps and chunks.
    fn begin(&self, what: &str, answer: Option<&Value>, context: &Context) -> Result<(), ExtensionError> {
        let Some(answer) = answer else { return Ok(()) };
        for line in answer["does"].as_array().into_iter().flatten() {
            let line = line.as_str().unwrap_or("");
            if let Err(fail) = self.stage.does(line) {
                self.stage.blame(format!("{what}: {line}: {fail}"));
            }
        }
        for chunk in answer["chunks"].as_array().into_iter().flatten() {
            match context.chunk(&grown(chunk)) {
                Err(err) if err.name() != "Cancelled" => return Err(err),
                _ => {}
            }
        }
        Ok(())
    }

    async fn end(&self, what: &str, answer: Option<&Value>, context: &Context) -> Result<Value, ExtensionError> {
        let Some(answer) = answer else { return Err(ExtensionError::new("Error", "no answer")) };
        let result = match answer.get("error") {
            Some(error) => Err(failure(&grown(error))),
            None => Ok(grown(&answer["result"])),
        };
        if answer["wait"] == true {
            self.withdrawn(what, answer, context).await;
            self.counts_not(what, context, &result);
        }
        if answer["dies"] == true {
            self.agent.hang_up();
            context.cancelled().await; // what nobody hears any more is withdrawn
        }
        if answer["twice"] == true {
            self.counts(what, context, &result);
        }
        result
    }

    /// Answers beside the function's own answer, which then is the third.
    fn counts<T: Serialize>(&self, what: &str, context: &Context, result: &Result<T, ExtensionError>) {
        if !context.answer(&reply(result)) {
            self.stage.blame(format!("{what}: the answer did not count"));
        }
        self.counts_not(what, context, result);
    }

    fn counts_not<T: Serialize>(&self, what: &str, context: &Context, result: &Result<T, ExtensionError>) {
        if context.answer(&reply(result)) {
            self.stage.blame(format!("{what}: a late or second answer counted"));
        }
    }

    /// Waits until nobody waits for the answer any more; the play bounds it.
    async fn withdrawn(&self, what: &str, answer: &Value, context: &Context) {
        context.cancelled().await;
        let reason = context.reason();
        if answer["withdrawn"].as_str().is_some_and(|want| reason.as_deref() != Some(want)) {
            self.stage.blame(format!("{what}: withdrawn because {reason:?}, want {}", answer["withdrawn"]));
        }
    }

    fn want(&self, what: &str, calls: &Value) {
        if let Some(calls) = calls.as_u64() {
            self.counts.lock().expect("no panic").wanted.insert(what.to_owned(), calls);
        }
    }

    /// Counts a request and gives its number, from 1 on.
    fn asked(&self, what: &str) -> usize {
        let mut counts = self.counts.lock().expect("no panic");
        counts.busy += 1;
        let asked = counts.asked.entry(what.to_owned()).or_default();
        *asked += 1;
        self.news.notify_all();
        usize::try_from(*asked).expect("few")
    }

    fn done(&self) {
        self.counts.lock().expect("no panic").busy -= 1;
        self.news.notify_all();
    }

    /// Waits until everything was asked as often as it must be, and answered.
    pub fn settle(&self) -> Result<(), Fail> {
        let differ = |c: &Counts, less: bool| {
            let asked = |what: &String| c.asked.get(what).copied().unwrap_or(0);
            c.wanted.iter().find(|(what, want)| asked(what) != **want && (!less || asked(what) < **want)).map(|(what, want)| {
                let got = asked(what);
                format!("{what} was asked {got} times, want {want}")
            })
        };
        let counts = self.counts.lock().expect("no panic");
        let (counts, late) = self.news.wait_timeout_while(counts, PATIENCE, |c| c.busy > 0 || differ(c, true).is_some()).expect("no panic");
        match differ(&counts, false) {
            Some(words) => Err(Fail::Words(words)),
            None if late.timed_out() => Err(Fail::Words(format!("{} requests were never answered", counts.busy))),
            None => Ok(()),
        }
    }
}

/// Who an extension is registered with.
#[derive(Clone, Copy)]
pub enum Owner<'a> {
    Agent(&'a Agent),
    Session(&'a AgentSession),
}

impl Owner<'_> {
    /// The word for it in host.json.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Session(_) => "session",
        }
    }

    fn register(self, kind: &str, spec: Value, handlers: Handlers) -> a3s_code_core::Result<Registration> {
        match self {
            Self::Agent(agent) => agent.register_extension(kind, spec, handlers),
            Self::Session(session) => session.register_extension(kind, spec, handlers),
        }
    }
}

/// An answer as the library gets it.
fn reply<T: Serialize>(result: &Result<T, ExtensionError>) -> Value {
    match result {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({ "error": error }),
    }
}

async fn tool_answer(host: &Host, answer: &Value, args: &Value, context: &ToolContext) -> Result<ToolOutput, ExtensionError> {
    let given = tool_output(host, answer, args, context).await;
    if answer["twice"] == true {
        host.counts(context.tool_name(), context, &given);
    }
    given
}

async fn tool_output(host: &Host, answer: &Value, args: &Value, context: &ToolContext) -> Result<ToolOutput, ExtensionError> {
    for chunk in answer["chunks"].as_array().into_iter().flatten() {
        context.emit(chunk.as_str().unwrap_or(""));
    }
    if answer["wait"] == true {
        host.withdrawn(context.tool_name(), answer, context).await;
    }
    if let Some(error) = answer.get("error") {
        return Err(failure(error));
    }
    let mut output = ToolOutput::new(answer["output"].as_str().or(args["text"].as_str()).unwrap_or(""));
    output = output.with_exit_code(answer["exit_code"].as_i64().unwrap_or(0));
    if answer.get("metadata").is_some() {
        output = output.with_metadata(object(&answer["metadata"]));
    }
    Ok(output)
}

/// The operations of a kind, as the schema of the project says.
fn operations(kind: &str) -> Result<Vec<String>, Fail> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include/a3s.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let ops = schema["host_kinds"].as_array().into_iter().flatten().find(|k| k["kind"] == kind).map(|k| k["ops"].clone());
    Ok(ops.iter().flat_map(|ops| ops.as_array()).flatten().filter_map(|o| o["op"].as_str()).map(str::to_owned).collect())
}

fn failure(error: &Value) -> ExtensionError {
    let mut failure = ExtensionError::new(error["type"].as_str().unwrap_or(""), error["message"].as_str().unwrap_or(""));
    if let Some(kind) = error["kind"].as_str() {
        failure = failure.with_kind(kind);
    }
    if error["retryable"] == true {
        failure = failure.retryable();
    }
    if let Some(ms) = error["retry_after_ms"].as_u64() {
        failure = failure.retry_after(std::time::Duration::from_millis(ms));
    }
    object(&error["details"]).into_iter().fold(failure, |failure, (name, value)| failure.with_detail(name, value))
}

/// A value with its large texts written out.
fn grown(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(grown).collect(),
        Value::Object(map) => match map.get("$big").and_then(Value::as_u64) {
            Some(n) => "x".repeat(usize::try_from(n).expect("it fits")).into(),
            None => map.iter().map(|(k, v)| (k.clone(), grown(v))).collect::<Map<_, _>>().into(),
        },
        other => other.clone(),
    }
}

//! What is registered, of any kind; models.

mod kit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a3s_code_core::host::{self, Blocking, CommandRequest, ExtensionError, Model, ModelChunk, ModelRequest, ModelResult, ModelSpec};
use a3s_code_core::{codes, Agent, AgentEvent, AgentSession, Chunks, Context, Handlers, Registration, TokenUsage, Tool};
use kit::Place;
use serde_json::{json, Value};

const MINE: &str = "default_model = \"host/mine\"\n";

fn says(words: &'static str) -> impl Model {
    move |_: ModelRequest, _: Chunks<ModelChunk>| async move { Ok(words) }
}

fn opened(place: &Place, agent: &Agent) -> AgentSession {
    agent.session(place.workspace(), None).expect("a session")
}

fn said(session: &AgentSession, prompt: &str) -> String {
    session.send(prompt, None).wait().expect("an answer").text
}

/// Everything may go to another thread, and be used by many.
#[test]
fn things_are_send_and_sync() {
    fn both<T: Send + Sync + 'static>() {}
    both::<(Registration, host::StoreRegistration, host::WorkspaceRegistration)>();
    both::<(Context, Chunks<ModelChunk>, ExtensionError, Handlers, Tool, Blocking<fn()>)>();
}

#[test]
fn a_registration_is_taken_back() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let mine = agent.register_model("mine", says("one")).unwrap();
    assert_eq!((mine.kind(), mine.name()), ("model", "mine"));
    assert_eq!(agent.register_model("mine", says("two")).unwrap_err().code(), codes::ALREADY_EXISTS);
    let session = opened(&place, &agent);
    assert_eq!(said(&session, "hi"), "one");
    assert!(mine.close() && !mine.close() && !mine.clone().close());
    let err = session.send("hi", None).wait().unwrap_err();
    assert!(err.code() == codes::LLM_ERROR && err.message().contains("took its model"), "{err:?}");
    agent.register_model("mine", says("three")).unwrap();
    assert_eq!(said(&opened(&place, &agent), "hi"), "three");
    assert!(agent.unregister_extension("model", "mine") && !agent.unregister_extension("model", "mine"));
    for name in ["", "a b", "a\0b", &"x".repeat(65)] {
        assert_eq!(agent.register_model(name, says("x")).unwrap_err().code(), codes::INVALID_REQUEST, "{name:?}");
    }
    session.close().wait().unwrap();
    let command = || Blocking(|_: CommandRequest, _: Context| Ok("x"));
    assert_eq!(session.register_command("x", command()).unwrap_err().code(), codes::SESSION_CLOSED);
    agent.close().wait().unwrap();
    assert_eq!(agent.register_command("x", command()).unwrap_err().code(), codes::SESSION_CLOSED);
    assert!(!agent.unregister_extension("model", "mine"));
}

/// What it is asked meanwhile is withdrawn.
#[test]
fn a_registration_is_taken_back_under_way() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let (told, reasons) = std::sync::mpsc::channel();
    let waits = move |_: ModelRequest, out: Chunks<ModelChunk>| {
        let told = told.clone();
        async move {
            out.send("begun")?;
            out.cancelled().await;
            let _ = told.send(out.reason());
            Ok("too late")
        }
    };
    let mine = agent.register_model("mine", waits).unwrap();
    let session = opened(&place, &agent);
    let (events, run) = session.stream("go", None).wait().unwrap();
    let closed = events.into_iter().filter(|e| matches!(e, AgentEvent::TextDelta { .. })).all(|_| mine.close());
    assert!(closed && run.wait().unwrap_err().message().contains("took its model"));
    assert_eq!(reasons.recv_timeout(Duration::from_secs(20)).unwrap().as_deref(), Some("cancelled"));
}

#[test]
fn what_cannot_be_registered() {
    let place = Place::new("say .\n");
    let (agent, session) = (place.agent(), place.session());
    let refused = |kind: &str, spec: Value| {
        let err = agent.register_extension(kind, spec.clone(), Handlers::new()).unwrap_err();
        assert!(!err.message().is_empty(), "{kind} {spec}");
        err.code().to_owned()
    };
    assert_eq!(refused("hook", json!({ "name": "x" })), "UNSUPPORTED_OPERATION");
    for (kind, spec) in [
        ("", json!({ "name": "x" })),
        ("mo\0del", json!({ "name": "x" })),
        ("model", json!(null)),
        ("model", json!(5)),
        ("model", json!([])),
        ("model", json!({})),
        ("model", json!({ "name": 5 })),
        ("model", json!({ "name": "x", "models": 3 })),
        ("model", json!({ "name": "x", "context": "big" })),
        ("model", json!({ "name": "x", "timeout_ms": -1 })),
        ("log", json!({ "name": "x", "level": "loud" })),
        ("tool", json!({ "name": "x", "parameters": { "type": 5 } })),
    ] {
        assert_eq!(refused(kind, spec.clone()), codes::INVALID_REQUEST, "{kind} {spec}");
    }
    let err = session.register_extension("model", json!({ "name": "x" }), Handlers::new()).unwrap_err();
    assert!(err.code() == codes::INVALID_REQUEST && err.message().contains("agent"), "{err:?}");
}

/// Says what it hears, and how it was asked.
struct Echo;

impl Model for Echo {
    async fn stream(&self, request: ModelRequest, out: Chunks<ModelChunk>) -> host::Result<ModelResult> {
        out.send(ModelChunk::reasoning("hm"))?;
        for word in request.messages.last().map(a3s_code_core::Message::text).unwrap_or_default().split_inclusive(' ') {
            out.send(word)?;
        }
        assert_eq!((out.kind(), out.op(), out.name()), ("model", "stream", "mine"));
        let usage = serde_json::from_value::<TokenUsage>(json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 }))?;
        Ok(ModelResult { usage: Some(usage), ..ModelResult::default() })
    }
}

/// Answers at once.
struct Whole<const STREAMS: bool>;

impl<const STREAMS: bool> Model for Whole<STREAMS> {
    const BLOCKS: bool = true;
    const STREAMS: bool = STREAMS;

    async fn complete(&self, request: ModelRequest, context: Context) -> host::Result<ModelResult> {
        Ok(format!("{} {} {}", context.op(), request.messages.len(), request.tools.len()).as_str().into())
    }
}

#[test]
fn a_model_answers_in_pieces_or_at_once() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let mine = agent.register_model(ModelSpec { context: Some(9000), ..ModelSpec::from("mine") }, Echo).unwrap();
    let session = opened(&place, &agent);
    let (events, run) = session.stream("to be or not", None).wait().unwrap();
    let events: Vec<AgentEvent> = events.into_iter().collect();
    let texts = |e: &AgentEvent| matches!(e, AgentEvent::TextDelta { .. } | AgentEvent::ReasoningDelta { .. });
    assert!(events.iter().filter(|e| texts(e)).count() >= 2, "{events:?}");
    let result = run.wait().unwrap();
    assert_eq!((result.text.as_str(), result.usage.total_tokens), ("to be or not", 5));
    mine.close();
    let without_tools = ModelSpec { tool_call: Some(false), ..ModelSpec::from("mine") };
    let mine = agent.register_model(without_tools.clone(), Whole::<false>).unwrap();
    assert_eq!(said(&opened(&place, &agent), "hi"), "complete 1 0");
    mine.close();
    agent.register_model(without_tools, Whole::<true>).unwrap();
    assert_eq!(said(&opened(&place, &agent), "hi"), "stream 1 0");
}

#[test]
fn what_a_model_fails_with_is_told() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let fails = move |request: ModelRequest, _: Chunks<ModelChunk>| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match request.messages[0].text().as_str() {
                "again" if n == 0 => Err(ExtensionError::new("Overloaded", "busy").retry_after(Duration::from_millis(1))),
                "again" => Ok("now".to_owned()),
                "panic" => panic!("no more"),
                "big" => Ok("x".repeat(50 << 20)),
                _ => Err("x".parse::<i32>().unwrap_err().into()),
            }
        }
    };
    agent.register_model(ModelSpec { timeout_ms: Some(20_000), ..ModelSpec::from("mine") }, fails).unwrap();
    let failed = |prompt| opened(&place, &agent).send(prompt, None).wait().unwrap_err();
    assert_eq!(said(&opened(&place, &agent), "again"), "now");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    for (prompt, words) in [("panic", "Panic: no more"), ("parse", "ParseIntError: invalid digit"), ("big", "")] {
        let err = failed(prompt);
        assert!(err.code() == codes::LLM_ERROR && err.message().contains(words), "{prompt}: {err:?}");
    }
}

/// A model that is cancelled in the middle ends at its next piece; the library does not wait.
#[test]
fn a_cancelled_model_ends_at_its_next_piece() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let told: Arc<Mutex<Option<ExtensionError>>> = Arc::default();
    let seen = Arc::clone(&told);
    let endless = Blocking(move |_: ModelRequest, out: Chunks<ModelChunk>| -> host::Result<()> {
        out.send("begun")?;
        out.wait_cancelled(Duration::from_secs(20));
        let err = out.send("too late").unwrap_err();
        *seen.lock().unwrap() = Some(err.clone());
        Err(err)
    });
    agent.register_model("mine", endless).unwrap();
    let session = opened(&place, &agent);
    let (events, run) = session.stream("go", None).wait().unwrap();
    for event in events {
        if matches!(event, AgentEvent::TextDelta { .. }) {
            run.cancel();
        }
    }
    assert_eq!(run.wait().unwrap_err().code(), codes::CANCELLED);
    kit::eventually("the end of the model", || told.lock().unwrap().is_some());
    assert_eq!(told.lock().unwrap().as_ref().unwrap().name(), "Cancelled");
}

/// Async functions run in the runtime they were registered in; what blocks does not.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn functions_run_where_they_should() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let mine = std::thread::current().id();
    let async_model = move |_: ModelRequest, _: Chunks<ModelChunk>| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(format!("{}", std::thread::current().id() == mine))
    };
    let registered = agent.register_model("mine", async_model).unwrap();
    let run = |session: AgentSession| async move { session.send("hi", None).await.unwrap().text };
    assert_eq!(run(opened(&place, &agent)).await, "true");
    registered.close();
    let blocks = Blocking(move |_: ModelRequest, _: Chunks<ModelChunk>| Ok(format!("{}", std::thread::current().id() == mine)));
    agent.register_model("mine", blocks).unwrap();
    assert_eq!(run(opened(&place, &agent)).await, "false");
}

/// Garbage of every kind, through the generic registration: the kind's own failure.
#[test]
fn garbage_is_refused() {
    let place = Place::with_acl(MINE);
    let agent = place.agent();
    let answers: Arc<Mutex<Value>> = Arc::default();
    let next = Arc::clone(&answers);
    let handlers = Handlers::new().on("stream", move |_: Value, context: Context| {
        let answer = next.lock().unwrap().clone();
        async move {
            if let Some(chunk) = answer.get("chunk") {
                context.chunk(chunk)?;
            }
            Ok(answer["result"].clone())
        }
    });
    agent.register_extension("model", json!({ "name": "mine" }), handlers).unwrap();
    let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": inner }));
    for result in [json!(7), json!("x"), json!([]), json!({ "text": 5 }), json!({ "word": "x" }), deep] {
        *answers.lock().unwrap() = json!({ "result": result });
        let err = opened(&place, &agent).send("hi", None).wait().unwrap_err();
        assert_eq!(err.code(), codes::LLM_ERROR, "{result}");
    }
    for chunk in [json!(7), json!({ "text": 5 }), json!({ "word": "x" })] {
        *answers.lock().unwrap() = json!({ "result": {}, "chunk": chunk });
        let err = opened(&place, &agent).send("hi", None).wait().unwrap_err();
        assert_eq!(err.code(), codes::LLM_ERROR, "{chunk}");
    }
    // An operation without a function says so.
    let other =
        agent.register_extension("command", json!({ "name": "x" }), Handlers::new().on("other", |_: Value, _: Context| async { Ok(1) }));
    let session = opened(&place, &agent);
    assert!(said(&session, "/x").contains("run of command \"x\" is not implemented"));
    assert!(other.unwrap().close());
}

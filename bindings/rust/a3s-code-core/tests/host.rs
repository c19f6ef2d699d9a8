//! Models, checkers, context providers, commands, log receivers and transports of this program.

mod kit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a3s_code_core::host::{
    self, Blocking, CommandRequest, CommandSpec, ContextItem, ContextQuery, ContextSpec, ExtensionError, LogLine, LogSpec, Model,
    ModelChunk, ModelRequest, ModelResult, ModelSpec, PermissionCheck, PermissionChecker, PermissionExpose, PermissionSpec, TransportChunk,
    TransportRequest, Verdict,
};
use a3s_code_core::{
    codes, Agent, AgentEvent, AgentSession, Chunks, Context, Handlers, PermissionDecision, Registration, TokenUsage, Tool,
};
use kit::Place;
use serde_json::{json, Value};

const MINE: &str = "default_model = \"host/mine\"\n";
const WRITE: &str = "call write {\"file_path\":\"x.txt\",\"content\":\"x\"}\nend\nsay done\n";

fn says(words: &'static str) -> impl Model {
    move |_: ModelRequest, _: Chunks<ModelChunk>| async move { Ok(words) }
}

fn opened(place: &Place, agent: &Agent) -> AgentSession {
    agent.session(place.workspace(), None).expect("a session")
}

fn said(session: &AgentSession, prompt: &str) -> String {
    session.send(prompt, None).wait().expect("an answer").text
}

/// Answers when nobody waits any more.
fn late<T>(context: &Context) -> host::Result<T> {
    futures::executor::block_on(context.cancelled());
    Err(ExtensionError::msg(context.reason().unwrap_or_default()))
}

/// What hangs is not waited for.
fn limit(case: &str) -> Option<i64> {
    Some(if case == "hangs" { 100 } else { 20_000 })
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
    agent.register_model(ModelSpec { timeout_ms: limit(""), ..ModelSpec::from("mine") }, fails).unwrap();
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

/// Who decides, whether the call ran, and what the denial says.
#[test]
fn a_checker_judges_calls() {
    type Check = fn(&PermissionCheck, &Context) -> host::Result<Verdict>;
    let cases: [(&str, Check, bool, &str); 7] = [
        ("allows", |_, _| Ok(Verdict::allow()), true, ""),
        ("decision", |_, _| Ok(PermissionDecision::Allow.into()), true, ""),
        ("asks", |_, _| Ok(Verdict::ask("sure?")), false, "nobody can be asked"),
        ("denies", |_, _| Ok(Verdict::deny("not today")), false, "not today"),
        ("fails", |_, _| Err(std::io::Error::other("boom").into()), false, "Error: boom"),
        ("panics", |_, _| panic!("boom"), false, "Panic: boom"),
        ("hangs", |_, c| late(c), false, "within 100ms"),
    ];
    for (name, check, ran, words) in cases {
        for on_agent in [true, false] {
            let place = Place::new(WRITE);
            let agent = place.agent();
            let spec = PermissionSpec { timeout_ms: limit(name), ..PermissionSpec::from("judge") };
            let checker = Blocking(move |call: PermissionCheck, context: Context| {
                assert!(call.tool == "write" && call.effects.write && call.args["file_path"] == "x.txt" && context.op() == "check");
                check(&call, &context)
            });
            let mut registered = on_agent.then(|| agent.register_permission_checker(spec.clone(), checker).unwrap());
            let session = opened(&place, &agent);
            registered = registered.or_else(|| Some(session.register_permission_checker(spec, checker).unwrap()));
            let events: Vec<AgentEvent> = session.stream("go", None).wait().unwrap().0.into_iter().collect();
            assert_eq!(place.workspace().join("x.txt").exists(), ran, "{name}");
            let denied = events.iter().find_map(|e| match e {
                AgentEvent::PermissionDenied { reason, .. } => Some(reason.as_str()),
                _ => None,
            });
            assert!(if ran { denied.is_none() } else { denied.is_some_and(|r| r.contains(words)) }, "{name}: {denied:?}");
            assert!(registered.unwrap().close());
        }
    }
}

/// Shows what it is told to.
struct Shows(&'static str);

impl PermissionChecker for Shows {
    const EXPOSES: bool = true;

    async fn check(&self, _: PermissionCheck, _: Context) -> host::Result<Verdict> {
        Ok(Verdict::allow())
    }

    async fn expose(&self, tool: PermissionExpose, _: Context) -> host::Result<bool> {
        match self.0 {
            "" => Err(ExtensionError::msg("do not know")),
            shown => Ok(tool.tool == shown),
        }
    }
}

#[test]
fn a_checker_hides_tools() {
    for (shown, want) in [("write", vec!["write"]), ("", vec![])] {
        let place = Place::with_acl(MINE);
        let agent = place.agent();
        let tools: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&tools);
        let model = move |request: ModelRequest, _: Chunks<ModelChunk>| {
            *seen.lock().unwrap() = request.tools.into_iter().map(|t| t.name).filter(|n| n != "artifact_read").collect();
            async { Ok("done") }
        };
        agent.register_model("mine", model).unwrap();
        agent.register_permission_checker("judge", Shows(shown)).unwrap();
        said(&opened(&place, &agent), "go");
        assert_eq!(*tools.lock().unwrap(), want);
    }
}

#[test]
fn a_provider_gives_background() {
    type Query = fn(&ContextQuery, &Context) -> host::Result<Vec<ContextItem>>;
    let item = |query: &ContextQuery| ContextItem { id: "1".into(), content: format!("about {}", query.query), ..ContextItem::default() };
    let cases: [(&str, Query, bool); 4] = [
        ("item", |q, _| Ok(vec![ContextItem { id: "1".into(), content: format!("about {}", q.query), ..ContextItem::default() }]), true),
        ("none", |_, _| Ok(vec![]), false),
        ("fails", |_, _| Err(ExtensionError::msg("boom")), false),
        ("hangs", |_, c| late(c), false),
    ];
    assert_eq!(item(&ContextQuery::default()).content, "about ");
    for (name, query, told) in cases {
        let place = Place::with_acl(MINE);
        let agent = place.agent();
        let systems: Arc<Mutex<String>> = Arc::default();
        let seen = Arc::clone(&systems);
        let model = move |request: ModelRequest, _: Chunks<ModelChunk>| {
            *seen.lock().unwrap() = request.system.unwrap_or_default();
            async { Ok("done") }
        };
        agent.register_model("mine", model).unwrap();
        let spec = ContextSpec { timeout_ms: limit(name), ..ContextSpec::from("wiki") };
        agent.register_context_provider(spec, Blocking(move |q: ContextQuery, c: Context| query(&q, &c))).unwrap();
        assert_eq!(said(&opened(&place, &agent), "the cache"), "done");
        assert_eq!(systems.lock().unwrap().contains("about the cache"), told, "{name}");
    }
}

#[test]
fn a_command_answers_without_a_model() {
    let place = Place::new("say hello\n");
    let session = place.session();
    let inner = session.clone();
    let count = move |request: CommandRequest, _: Context| {
        let session = inner.clone(); // a command may look at its session
        async move { Ok(format!("{} {} {}", request.args, session.history().await?.len(), request.ctx.history_len)) }
    };
    let spec = CommandSpec { description: Some("Counts.".into()), usage: Some("/count WORDS".into()), ..CommandSpec::from("count") };
    let counted = session.register_command(spec, count).unwrap();
    assert_eq!(said(&session, "hi"), "hello");
    assert_eq!(said(&session, "/count a b"), "a b 2 2");
    let help = said(&session, "/help");
    assert!(help.contains("Counts.") && help.contains("/count WORDS"), "{help}");
    assert!(counted.close());
    assert!(said(&session, "/count").contains("There is no command /count"));
    let spec = |name: &str| CommandSpec { timeout_ms: limit(name), ..CommandSpec::from(name) };
    session.register_command(spec("panics"), Blocking(|_: CommandRequest, _: Context| -> host::Result<String> { panic!("boom") })).unwrap();
    session
        .register_command(spec("hangs"), |_: CommandRequest, _: Context| async { std::future::pending::<host::Result<String>>().await })
        .unwrap();
    assert_eq!(said(&session, "/panics"), "The command /panics failed: Panic: boom");
    assert!(said(&session, "/hangs").contains("within 100ms"));
    assert_eq!(session.register_command("help", says_nothing()).unwrap_err().code(), codes::ALREADY_EXISTS);
    session.close().wait().unwrap(); // what the command captured goes with it
}

fn says_nothing() -> impl host::Command {
    Blocking(|_: CommandRequest, _: Context| Ok(""))
}

#[test]
fn log_lines_are_received() {
    let place = Place::new("say a\nend\nsay b\n");
    let session = place.session();
    session
        .register_context_provider("wiki", |_: ContextQuery, _: Context| async { Err::<Vec<_>, _>(ExtensionError::msg("boom")) })
        .unwrap();
    let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
    let seen = Arc::clone(&lines);
    let take = move |line: LogLine, _: Context| {
        seen.lock().unwrap().push(line);
        async { Ok(()) }
    };
    let spec = LogSpec { level: Some("warn".into()), ..LogSpec::from("log") };
    let log = session.register_log(spec, take).unwrap();
    session.register_log("broken", Blocking(|_: LogLine, _: Context| -> host::Result<()> { panic!("no paper") })).unwrap();
    said(&session, "hi");
    kit::eventually("the line", || !lines.lock().unwrap().is_empty());
    assert!(log.close());
    said(&session, "hi");
    let lines = lines.lock().unwrap();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((line.level.as_str(), line.message.as_str()), ("warn", "context provider wiki was left out: Error: boom"));
}

const OVER: &str = "default_model = \"openai/gpt\"\nproviders \"openai\" { apiKey = \"sk-the-key\" transport = \"host/tunnel\" baseUrl = \"https://models.example\" models \"gpt\" { } }\n";
const SSE: &str = "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\ndata: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\ndata: [DONE]\n\n";

#[test]
fn a_transport_sends_requests() {
    for at_once in [true, false] {
        let place = Place::with_acl(OVER);
        let agent = place.agent();
        let tunnel = move |request: TransportRequest, out: Chunks<TransportChunk>| async move {
            assert!(request.method == "POST" && request.url.starts_with("https://models.example"), "{}", request.url);
            assert_eq!(request.headers["Authorization"], ["Bearer sk-the-key"]);
            let body: Value = serde_json::from_slice(&request.body.unwrap_or_default())?;
            assert_eq!(body["model"], "gpt");
            let head = TransportChunk::head(200, [("content-type".to_owned(), "text/event-stream".to_owned())]);
            if at_once {
                return Ok(TransportChunk { text: Some(SSE.to_owned()), ..head });
            }
            out.send(head)?;
            for piece in SSE.as_bytes().chunks(20) {
                out.send(piece.to_vec())?;
            }
            Ok(().into())
        };
        agent.register_transport("tunnel", tunnel).unwrap();
        assert_eq!(said(&opened(&place, &agent), "hi"), "hello", "{at_once}");
    }
    let place = Place::with_acl(OVER);
    let agent = place.agent();
    agent
        .register_transport("tunnel", |_: TransportRequest, _: Chunks<TransportChunk>| async {
            Err::<TransportChunk, _>(ExtensionError::msg("no way"))
        })
        .unwrap();
    let err = opened(&place, &agent).send("hi", None).wait().unwrap_err();
    assert!(err.code() == codes::LLM_ERROR && err.message().contains("no way"), "{err:?}");
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

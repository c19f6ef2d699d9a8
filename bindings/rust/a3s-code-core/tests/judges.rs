//! Checkers, context providers, commands, log receivers and transports of this program.

mod kit;

use std::sync::{Arc, Mutex};

use a3s_code_core::host::{
    self, Blocking, CommandRequest, CommandSpec, ContextItem, ContextQuery, ContextSpec, ExtensionError, LogLine, LogSpec, ModelChunk,
    ModelRequest, PermissionCheck, PermissionChecker, PermissionExpose, PermissionSpec, TransportChunk, TransportRequest, Verdict,
};
use a3s_code_core::{codes, Agent, AgentEvent, AgentSession, Chunks, Context, PermissionDecision};
use kit::Place;
use serde_json::Value;

const MINE: &str = "default_model = \"host/mine\"\n";
const WRITE: &str = "call write {\"file_path\":\"x.txt\",\"content\":\"x\"}\nend\nsay done\n";

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

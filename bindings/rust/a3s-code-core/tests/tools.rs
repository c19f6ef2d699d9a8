//! Tools of the host: arguments, results, failures, panics, cancellation.
#![cfg(feature = "schemars")]

mod kit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a3s_code_core::{
    codes, AgentEvent, AgentSession, ExtensionError, Json, Result, SessionOptions, Tool, ToolContext, ToolErrorKind, ToolOutput,
};
use futures::StreamExt;
use kit::Place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

/// Arguments.
#[derive(Deserialize, JsonSchema)]
struct Weather {
    /// Name of the city.
    city: String,
    #[serde(default)]
    unit: Unit,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
enum Unit {
    #[default]
    C,
    F,
}

#[derive(Serialize)]
struct Report {
    city: String,
    degrees: i32,
    unit: Unit,
}

fn weather() -> Tool {
    Tool::new::<Weather>("weather", "Says what the weather is.", |args, _ctx| async move {
        Ok(Json(Report { city: args.city, degrees: 20, unit: args.unit }))
    })
    .read_only()
}

/// Runs the script's calls and gives how each of them ended.
fn ends(session: &AgentSession) -> Vec<AgentEvent> {
    let (events, _run) = session.stream("go", None).wait().unwrap();
    events.into_iter().filter(|e| matches!(e, AgentEvent::ToolEnd { .. })).collect()
}

fn outcome(event: &AgentEvent) -> (&str, i64) {
    match event {
        AgentEvent::ToolEnd { output, exit_code, .. } => (output, *exit_code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_function_is_a_tool() {
    let place = Place::new("call weather {\"city\":\"Kyoto\",\"unit\":\"F\"}\ncall weather {\"city\":\"Oslo\"}\nend\nsay done\n");
    let session = place.session();
    session.register_tool(weather()).unwrap();
    let definition = session.tool_definitions().wait().unwrap().into_iter().find(|t| t.name == "weather").unwrap();
    assert_eq!(definition.description, "Says what the weather is.");
    let city = &definition.parameters["properties"]["city"];
    assert_eq!((city["type"].as_str(), city["description"].as_str()), (Some("string"), Some("Name of the city.")));
    assert_eq!(definition.parameters["required"], json!(["city"]));
    assert!(!definition.parameters.to_string().contains("$ref"), "{}", definition.parameters);
    let ends = ends(&session);
    assert_eq!(outcome(&ends[0]), (r#"{"city":"Kyoto","degrees":20,"unit":"F"}"#, 0));
    assert_eq!(outcome(&ends[1]), (r#"{"city":"Oslo","degrees":20,"unit":"C"}"#, 0));
    assert_eq!(session.register_tool(weather()).unwrap_err().code(), codes::ALREADY_EXISTS);
    assert!(session.unregister_tool("weather") && !session.unregister_tool("weather"));
    assert!(!session.tool_names().wait().unwrap().contains(&"weather".to_owned()));
    session.register_tool(weather()).unwrap();
    let err = session.register_tool(Tool::with_schema::<Value>("", "x", json!({}), |_, _| async { Ok("") })).unwrap_err();
    assert_eq!(err.code(), codes::INVALID_REQUEST);
}

#[test]
fn results_have_many_forms() {
    let place = Place::new("say .\n");
    let session = place.session();
    let schema = || json!({ "type": "object" });
    let kind = |kind: &str| serde_json::from_value::<ToolErrorKind>(json!({ "type": kind, "path": "a" })).unwrap();
    session.register_tool(Tool::with_schema::<Value>("text", "x", schema(), |_, _| async { Ok("text") })).unwrap();
    session.register_tool(Tool::with_schema::<Value>("none", "x", schema(), |_, _| async { Ok(()) })).unwrap();
    session.register_tool(Tool::with_schema::<Value>("value", "x", schema(), |args: Value, _| async move { Ok(args) })).unwrap();
    session.register_tool(Tool::with_schema::<Value>("word", "x", schema(), |_, _| async { Ok(json!("a word")) })).unwrap();
    session.register_tool(Tool::blocking("blocking", "x", schema(), |_: Value, _| Ok(String::from("blocked")))).unwrap();
    let rich = move |_: Value, _: ToolContext| {
        let metadata = json!({ "n": 1 }).as_object().cloned().unwrap();
        let output = ToolOutput::new("rich").with_exit_code(3).with_metadata(metadata).with_error_kind(kind("not_found"));
        async { Ok(output) }
    };
    session.register_tool(Tool::with_schema::<Value>("rich", "x", schema(), rich)).unwrap();
    let call = |name: &str| {
        let r = session.tool(name, json!({ "b": 1, "a": 2 })).wait().unwrap();
        (r.output, r.exit_code)
    };
    assert_eq!(call("text"), ("text".into(), 0));
    assert_eq!(call("none"), (String::new(), 0));
    assert_eq!(call("value"), (r#"{"a":2,"b":1}"#.into(), 0));
    assert_eq!(call("word"), ("a word".into(), 0));
    assert_eq!(call("blocking"), ("blocked".into(), 0));
    let rich = session.tool("rich", json!({})).wait().unwrap();
    assert_eq!((rich.exit_code, &rich.metadata.unwrap()["n"], rich.error_kind.unwrap().kind.as_str()), (3, &json!(1), "not_found"));
}

#[test]
fn failures_are_typed() {
    let place = Place::new(
        "call parse {\"text\":\"x\"}\nend\ncall own {}\nend\ncall msg {}\nend\ncall panics {}\nend\ncall later {}\nend\ncall library {}\nend\ncall weather {\"city\":5}\nend\nsay done\n",
    );
    let session = place.session();
    let none = || json!({ "type": "object" });
    let tools = [
        Tool::with_schema::<Value>("parse", "x", none(), |args: Value, _| async move {
            let n: i32 = args["text"].as_str().unwrap_or("").parse()?;
            Ok(n.to_string())
        }),
        Tool::with_schema::<Value>("own", "x", none(), |_, _| async {
            Err::<(), _>(ExtensionError::new("QuotaExceeded", "come back tomorrow"))
        }),
        Tool::with_schema::<Value>("msg", "x", none(), |_, _| async { Err::<(), _>(ExtensionError::msg("just words")) }),
        Tool::with_schema::<Value>("panics", "x", none(), |_, _| -> std::future::Ready<Result<(), ExtensionError>> {
            panic!("before the future")
        }),
        Tool::with_schema::<Value>("later", "x", none(), |_, _| async {
            if std::hint::black_box(true) {
                panic!("in the {}", "future");
            }
            Ok(())
        }),
        Tool::with_schema::<Value>("library", "x", none(), |_, _| async { Ok(a3s_code_core::Agent::open("nobody.acl").map(|_| ())?) }),
        weather(),
    ];
    tools.into_iter().for_each(|t| drop(session.register_tool(t).unwrap()));
    let ends = ends(&session);
    let failed: Vec<(String, String)> = ends
        .iter()
        .map(|e| match e {
            AgentEvent::ToolEnd { metadata: Some(m), exit_code: 1, .. } => {
                let text = |k: &str| m["exception"][k].as_str().unwrap_or("").to_owned();
                (text("type"), text("message"))
            }
            other => (String::new(), format!("{other:?}")),
        })
        .collect();
    let want = |i: usize, kind: &str, words: &str| assert!(failed[i].0 == kind && failed[i].1.contains(words), "{:?}", failed[i]);
    want(0, "ParseIntError", "invalid digit");
    want(1, "QuotaExceeded", "come back tomorrow");
    want(2, "Error", "just words");
    want(3, "Panic", "before the future");
    want(4, "Panic", "in the future");
    want(5, "CodeError", "nobody.acl");
    assert_eq!(ends.len(), 7);
    assert!(outcome(&ends[6]).0.contains("city") && failed[6].0.is_empty(), "against its schema: {:?}", ends[6]);
}

/// An answer that the library cannot take is told to the model as a failure.
#[test]
fn an_answer_that_cannot_be_taken_is_a_failure() {
    let place = Place::new("say .\n");
    let session = place.session();
    let deep = |_: Value, _: ToolContext| {
        let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": inner }));
        async move { Ok(ToolOutput::new("deep").with_metadata(deep.as_object().cloned().unwrap())) }
    };
    session.register_tool(Tool::with_schema::<Value>("deep", "x", json!({ "type": "object" }), deep)).unwrap();
    let result = session.tool("deep", json!({})).wait().unwrap();
    assert!(!result.is_ok() && result.output.contains("nested deeper"), "{result:?}");
}

/// A tool that is cancelled learns of it; the run does not wait for it.
#[test]
fn a_cancelled_call_is_told() {
    let place = Place::new("call waits {}\nend\nsay done\n");
    let session = place.session();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&told);
    let tool = Tool::with_schema::<Value>("waits", "Waits.", json!({ "type": "object" }), move |_, ctx: ToolContext| {
        let seen = Arc::clone(&seen);
        async move {
            assert!(!ctx.is_cancelled() && ctx.reason().is_none() && ctx.deadline().is_some());
            assert!(ctx.emit("waiting"));
            ctx.cancelled().await;
            ctx.cancelled().await;
            assert!(ctx.is_cancelled() && ctx.wait_cancelled(Duration::from_secs(20)));
            seen.lock().unwrap().push(format!("{} {}", ctx.tool_name(), ctx.reason().unwrap()));
            assert!(!ctx.emit("too late"));
            Ok("too late")
        }
    });
    session.register_tool(tool).unwrap();
    let (events, run) = session.stream("go", None).wait().unwrap();
    let mut ended = Vec::new();
    for event in events {
        match &event {
            AgentEvent::ToolOutputDelta { delta, .. } => {
                assert_eq!(delta, "waiting");
                run.cancel_because("enough");
            }
            AgentEvent::ToolEnd { .. } | AgentEvent::Error { .. } => ended.push(event),
            _ => {}
        }
    }
    assert_eq!(ended.len(), 2, "{ended:?}");
    kit::eventually("the tool's end", || !told.lock().unwrap().is_empty());
    assert_eq!(*told.lock().unwrap(), vec!["waits cancelled".to_owned()]);
}

#[test]
fn a_call_has_a_time_limit() {
    let place = Place::new("call slow {}\nend\nsay done\n");
    let session = place.session();
    let tool = Tool::blocking("slow", "Is slow.", json!({ "type": "object" }), |_: Value, ctx| {
        assert!(ctx.remaining().unwrap() <= Duration::from_millis(50));
        assert!(ctx.wait_cancelled(Duration::from_secs(20)));
        futures::executor::block_on(ctx.cancelled()); // its deadline has passed; the library says so a moment later
        Ok("too late")
    });
    session.register_tool(tool.timeout(Duration::from_millis(50))).unwrap();
    let ends = ends(&session);
    let AgentEvent::ToolEnd { error_kind: Some(kind), exit_code: 1, .. } = &ends[0] else { panic!("{ends:?}") };
    assert_eq!(kind.kind, "timeout");

    // Less than a millisecond is a limit as well, and what is too long is said in words.
    let never = || {
        Tool::with_schema("never", "x", json!({ "type": "object" }), |_: Value, ctx: ToolContext| async move {
            ctx.cancelled().await;
            Ok("too late")
        })
    };
    for limit in [Duration::ZERO, Duration::from_micros(300)] {
        session.register_tool(never().timeout(limit)).unwrap();
        assert_eq!(session.tool("never", json!({})).wait().unwrap().error_kind.unwrap().kind, "timeout");
        assert!(session.unregister_tool("never"));
    }
    let err = session.register_tool(never().timeout(Duration::MAX)).unwrap_err();
    assert!(err.message().contains("timeout_ms must be from 0 to"), "{err:?}");
}

#[tokio::test]
async fn a_tool_runs_in_the_runtime_it_was_registered_in() -> Result<()> {
    let place = Place::new("call sleeps {}\nend\nsay done\n");
    let session = place.session();
    let mine = std::thread::current().id();
    let tool = Tool::with_schema::<Value>("sleeps", "Sleeps.", json!({ "type": "object" }), move |_, _| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(json!(std::thread::current().id() == mine))
    });
    session.register_tool(tool)?;
    let (events, _run) = session.stream("go", None).await?;
    let ends: Vec<_> = events.filter(|e| std::future::ready(matches!(e, AgentEvent::ToolEnd { .. }))).collect().await;
    assert_eq!(outcome(&ends[0]), ("true", 0));
    Ok(())
}

/// What was spawned into a runtime that is gone still answers.
#[test]
fn a_runtime_that_ends_is_a_failure() {
    let place = Place::new("call never {}\nend\nsay done\n");
    let session = place.session();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let schema = json!({ "type": "object" });
    runtime
        .block_on(async {
            session.register_tool(Tool::with_schema::<Value>("never", "x", schema, |_, _| {
                std::future::pending::<Result<(), ExtensionError>>()
            }))
        })
        .unwrap();
    let (events, _run) = session.stream("go", None).wait().unwrap();
    let mut runtime = Some(runtime);
    let ends: Vec<_> = events
        .into_iter()
        .inspect(|e| {
            if matches!(e, AgentEvent::ToolExecutionStart { .. }) {
                runtime.take().unwrap().shutdown_background();
            }
        })
        .filter(|e| matches!(e, AgentEvent::ToolEnd { .. }))
        .collect();
    assert!(outcome(&ends[0]).0.contains("Dropped"), "{ends:?}");
}

/// A tool of the agent is there in all of its sessions; a session's own one comes first.
#[test]
fn a_tool_belongs_to_an_agent_or_a_session() {
    let place = Place::new("say .\n");
    let agent = place.agent();
    let said = |words: &'static str| {
        Tool::with_schema::<Value>("who", "x", json!({ "type": "object" }), move |_, ctx: ToolContext| async move {
            Ok(format!("{words} {}", ctx.session_id()))
        })
    };
    agent.register_tool(said("agent")).unwrap();
    let session = agent.session(place.workspace(), Some(SessionOptions::new().with_session_id("one"))).unwrap();
    let who = |s: &AgentSession| s.tool("who", json!({})).wait().unwrap().output;
    assert_eq!(who(&session), "agent one");
    assert!(agent.unregister_tool("who") && !agent.unregister_tool("who"));
    let other = agent.session(place.workspace(), Some(SessionOptions::new().with_session_id("two"))).unwrap();
    other.register_tool(said("session")).unwrap();
    assert_eq!(who(&other), "session two");
    assert!(!session.tool("who", json!({})).wait().unwrap().is_ok());
}

/// A tool may use its session; it lets go of what it captured when the session is closed.
#[test]
fn a_tool_calls_its_session() {
    let place = Place::new("call reads {}\nend\nsay done\n");
    place.write("a.txt", "the words\n");
    let session = place.session();
    let held = Arc::new(AtomicUsize::new(0));
    let (inner, counted) = (session.clone(), Arc::clone(&held));
    let tool = Tool::with_schema::<Value>("reads", "Reads.", json!({ "type": "object" }), move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        let session = inner.clone();
        async move { Ok(session.read_file("a.txt").await?) }
    });
    session.register_tool(tool).unwrap();
    let ends = ends(&session);
    assert!(outcome(&ends[0]).0.contains("the words"), "{ends:?}");
    assert_eq!((held.load(Ordering::Relaxed), Arc::strong_count(&held)), (1, 2));
    session.close().wait().unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Many calls at once, from many sessions.
#[test]
fn many_calls_at_once() {
    let place = Place::new("say .\n");
    let agent = place.agent();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let tool = Tool::with_schema::<Value>("adds", "Adds.", json!({ "type": "object" }), move |args: Value, ctx: ToolContext| {
        count.fetch_add(1, Ordering::Relaxed);
        ctx.emit("adding");
        async move { Ok(json!(args["a"].as_i64().unwrap_or(0) + args["b"].as_i64().unwrap_or(0))) }
    });
    agent.register_tool(tool.read_only()).unwrap();
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (agent, place) = (&agent, &place);
            scope.spawn(move || {
                let session = agent.session(place.workspace(), None).unwrap();
                futures::executor::block_on(async {
                    let sums = (0..25).map(|n| session.tool("adds", json!({ "a": i, "b": n })));
                    let sums: Vec<String> = futures::future::join_all(sums).await.into_iter().map(|r| r.unwrap().output).collect();
                    assert_eq!(sums, (0..25).map(|n| (i + n).to_string()).collect::<Vec<_>>());
                });
            });
        }
    });
    assert_eq!(calls.load(Ordering::Relaxed), 200);
}

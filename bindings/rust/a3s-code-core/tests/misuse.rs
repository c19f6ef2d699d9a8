//! What a program does wrong: a typed error each, no abort, nothing left behind.

mod kit;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use a3s_code_core::host::{Blocking, CommandRequest};
use a3s_code_core::{
    codes, Agent, AgentSession, Context, ExtensionError, FileSessionStore, Handlers, MemorySessionStore, ReadFileOptions, Result,
    SessionOptions, Tool, ToolContext,
};
use kit::Place;
use serde_json::{json, Value};

/// What every operation of a session gives for a text.
fn everything(session: &AgentSession, text: &str) -> Vec<(&'static str, Result<()>)> {
    let tool = Tool::with_schema::<Value>(text, text, json!({ "type": "object" }), |_, _| async { Ok("") });
    let nothing = Blocking(|_: CommandRequest, _: Context| Ok(""));
    vec![
        ("send", session.send(text, None).wait().map(drop)),
        ("stream", session.stream(text, None).wait().map(|(events, run)| drop((events.into_iter().last(), run.wait())))),
        ("stream", session.stream(text, Some(&[])).wait().map(|(events, _)| events.into_iter().for_each(drop))),
        ("events", session.events().map(drop)),
        ("history", session.history().wait().map(drop)),
        ("cancel", session.cancel().wait().map(drop)),
        ("cancel_run", session.cancel_run(text).wait().map(drop)),
        ("save", session.save().wait()),
        ("info", session.info().wait().map(drop)),
        ("runs", session.runs().wait().map(drop)),
        ("run_snapshot", session.run_snapshot(text).wait().map(drop)),
        ("run_events", session.run_events(text).wait().map(drop)),
        ("run_event_page", session.run_event_page(text, Some(i64::MAX), usize::MAX).wait().map(drop)),
        ("current_run", session.current_run().wait().map(drop)),
        ("active_tools", session.active_tools().wait().map(drop)),
        ("trace_events", session.trace_events().wait().map(drop)),
        ("get_artifact", session.get_artifact(text).wait().map(drop)),
        ("pending_confirmations", session.pending_confirmations().wait().map(drop)),
        ("confirm_tool_use", session.confirm_tool_use(text, true, Some(text)).wait().map(drop)),
        ("cancel_confirmations", session.cancel_confirmations().wait().map(drop)),
        ("tool_names", session.tool_names().wait().map(drop)),
        ("tool_definitions", session.tool_definitions().wait().map(drop)),
        ("list_commands", session.list_commands().wait().map(drop)),
        ("register_tool", session.register_tool(tool).map(drop)),
        ("register_command", session.register_command(text, nothing).map(drop)),
        ("register_extension", session.register_extension(text, json!({ "name": text }), Handlers::new()).map(drop)),
        ("tool", session.tool(text, json!({ "x": text })).wait().map(drop)),
        ("tool", session.tool("read", json!([text])).wait().map(drop)),
        ("tool", session.tool("read", json!(null)).wait().map(drop)),
        ("read_file", session.read_file(text).wait().map(drop)),
        (
            "read_file_with_options",
            session.read_file_with_options(text, ReadFileOptions { offset: Some(u64::MAX), limit: Some(0) }).wait().map(drop),
        ),
        ("write_file", session.write_file(text, text).wait().map(drop)),
        ("edit_file", session.edit_file(text, text, text, true).wait().map(drop)),
        ("send_request", session.send_request(&json!({ "prompt": text, "history": [] })).wait().map(drop)),
        ("stream_request", session.stream_request(&json!({ "prompt": text })).wait().map(|(events, _)| events.into_iter().for_each(drop))),
        ("ls", session.ls(Some(text)).wait().map(drop)),
        ("bash", session.bash(text).wait().map(drop)),
        ("glob", session.glob(text).wait().map(drop)),
        ("grep", session.grep(text).wait().map(drop)),
    ]
}

#[test]
fn strange_words_are_refused_or_taken() {
    let long = "\u{e9}".repeat(100_000);
    for text in ["", " ", "\0", "a\0b", "../../etc/passwd", "/", "\u{feff}\u{202e}", "{}", &long] {
        let place = Place::new("say fine\n");
        let session = place.session();
        for (name, result) in everything(&session, text) {
            if let Err(err) = result {
                assert!(!err.code().is_empty() && err.code() != codes::INTERNAL_ERROR && !err.message().is_empty(), "{name}: {err:?}");
            }
        }
        for request in
            [json!(text), json!({ "prompt": text, "history": text }), json!({ "prompt": 5 }), json!({ "other": text }), json!({})]
        {
            let (sent, streamed) = (session.send_request(&request).wait(), session.stream_request(&request).wait());
            assert_eq!(
                (sent.unwrap_err().code(), streamed.unwrap_err().code()),
                (codes::INVALID_REQUEST, codes::INVALID_REQUEST),
                "{request}"
            );
        }
        let agent = place.agent();
        assert!(!agent.close_session(text).wait().unwrap_or(false));
        assert!(agent.resume_session(text, SessionOptions::new()).is_err());
        let store = SessionOptions::new().with_session_store(MemorySessionStore::new());
        let err = agent.resume_session(text, store).unwrap_err();
        assert_ne!(err.code(), codes::INTERNAL_ERROR, "{err:?}");
    }
}

#[test]
fn a_closed_session_and_agent_say_so() {
    let place = Place::new("say fine\n");
    let agent = place.agent();
    let session = agent.session(place.workspace(), None).unwrap();
    let (mut events, run) = session.stream("hi", None).wait().unwrap();
    session.close().wait().unwrap();
    session.close().wait().unwrap();
    assert!(session.is_closed());
    while events.blocking_recv().is_some() {}
    assert!(events.blocking_recv().is_none() && run.is_finished());
    run.cancel();
    for (name, result) in everything(&session, "x") {
        match result {
            Ok(()) => {}
            Err(err) if name == "register_extension" => assert_eq!(err.code(), "UNSUPPORTED_OPERATION"),
            Err(err) => assert_eq!(err.code(), codes::SESSION_CLOSED, "{name}: {err:?}"),
        }
    }
    agent.close().wait().unwrap();
    agent.close().wait().unwrap();
    assert!(agent.is_closed());
    let closed = |err: a3s_code_core::CodeError| assert_eq!(err.code(), codes::SESSION_CLOSED, "{err:?}");
    closed(agent.session(place.workspace(), None).unwrap_err());
    closed(agent.resume_session("x", SessionOptions::new().with_session_store(FileSessionStore::new("x"))).unwrap_err());
    closed(agent.register_model("x", |_: a3s_code_core::host::ModelRequest, _: a3s_code_core::Chunks<_>| async { Ok("") }).unwrap_err());
    assert!(agent.list_sessions().wait().unwrap().is_empty());
    assert!(!agent.close_session("x").wait().unwrap());
}

#[test]
fn a_bad_configuration_is_named() {
    let long = "x".repeat(10 << 20);
    for source in ["", "\0", "nobody.acl", "{", "default_model = 5", "default_model = \"a/b\"", &long] {
        let err = Agent::open(source).unwrap_err();
        assert!([codes::CONFIG_ERROR, codes::INVALID_REQUEST].contains(&err.code()), "{:.20}: {err:?}", source);
    }
    assert_eq!(Agent::from_file("/").wait().unwrap_err().code(), codes::CONFIG_ERROR);
    let place = Place::new("say .\n");
    for (name, value) in [("A\0B", "x"), ("A", "x\0"), ("", "x"), ("A=B", "x")] {
        match Agent::builder(place.acl()).env([(name, value)]).open().wait() {
            Ok(agent) => agent.close().wait().unwrap(),
            Err(err) => assert_eq!(err.code(), codes::INVALID_REQUEST, "{err:?}"),
        }
    }
    let err = Agent::builder(place.acl()).cwd("relative/folder\0").open().wait().unwrap_err();
    assert_ne!(err.code(), codes::INTERNAL_ERROR, "{err:?}");
}

/// Functions that never answer: cancelling and closing do not wait for them.
#[test]
fn a_function_that_never_returns_holds_nobody() {
    let place = Place::new("call never {}\nend\nsay done\n");
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    for blocks in [false, true] {
        let agent = place.agent();
        let session = agent
            .session(place.workspace(), Some(SessionOptions::new().with_permission_policy(a3s_code_core::PermissionPolicy::permissive())));
        let session = session.unwrap();
        let schema = json!({ "type": "object" });
        let (begun, begins) = mpsc::channel();
        let tool = if blocks {
            let released = Arc::clone(&released);
            Tool::blocking("never", "x", schema, move |_: Value, _| {
                let _ = begun.send(());
                let _ = released.lock().unwrap().recv();
                Ok(())
            })
        } else {
            Tool::with_schema::<Value>("never", "x", schema, move |_, _| {
                let _ = begun.send(());
                std::future::pending::<std::result::Result<(), ExtensionError>>()
            })
        };
        session.register_tool(tool).unwrap();
        let (_events, run) = session.stream("go", None).wait().unwrap();
        begins.recv_timeout(Duration::from_secs(20)).unwrap();
        let at = Instant::now();
        run.cancel();
        assert_eq!(run.wait().unwrap_err().code(), codes::CANCELLED);
        agent.close().wait().unwrap();
        assert!(at.elapsed() < Duration::from_secs(8), "{:?}", at.elapsed());
    }
    drop(release);
}

#[test]
fn a_big_answer_is_cut_or_refused() {
    let place = Place::new("say .\n");
    let session = place.session();
    let big = |_: Value, _: ToolContext| async { Ok("x".repeat(50 << 20)) };
    session.register_tool(Tool::with_schema::<Value>("big", "x", json!({ "type": "object" }), big)).unwrap();
    let result = session.tool("big", json!({})).wait().unwrap();
    assert!(result.output.len() < 1 << 20, "{} bytes", result.output.len());
    let loud = |_: Value, _: ToolContext| async { Err::<(), _>(ExtensionError::new("Loud", "x".repeat(5 << 20))) };
    session.register_tool(Tool::with_schema::<Value>("loud", "x", json!({ "type": "object" }), loud)).unwrap();
    let result = session.tool("loud", json!({})).wait().unwrap();
    assert!(!result.is_ok() && result.output.len() < 1 << 20, "{} bytes", result.output.len());
    let many = |_: Value, ctx: ToolContext| async move { Ok((0..10).filter(|_| ctx.emit("x".repeat(1 << 20))).count().to_string()) };
    session.register_tool(Tool::with_schema::<Value>("many", "x", json!({ "type": "object" }), many)).unwrap();
    assert!(session.tool("many", json!({})).wait().unwrap().is_ok());
}

/// A function may take itself back, close its session, and panic with anything.
#[test]
fn a_function_pulls_the_rug_away() {
    let place = Place::new("say done\n");
    let agent = place.agent();
    let session = agent.session(place.workspace(), None).unwrap();
    let inner = session.clone();
    let gone = move |_: CommandRequest, context: Context| {
        let session = inner.clone();
        async move {
            assert!(session.unregister_extension("command", context.name()));
            Ok("gone")
        }
    };
    session.register_command("gone", gone).unwrap();
    let _ = session.send("/gone", None).wait(); // its own answer is withdrawn
    assert!(session.send("/gone", None).wait().unwrap().text.contains("There is no command"));
    session
        .register_command(
            "odd",
            Blocking(|_: CommandRequest, _: Context| -> a3s_code_core::host::Result<String> { std::panic::panic_any(7) }),
        )
        .unwrap();
    assert!(session.send("/odd", None).wait().unwrap().text.contains("Panic: it panicked"));
    let inner = session.clone();
    let close = Blocking(move |_: CommandRequest, _: Context| {
        inner.close().wait()?;
        Ok("closed")
    });
    session.register_command("close", close).unwrap();
    let _ = session.send("/close", None).wait();
    kit::eventually("the session's end", || session.is_closed());
    let other = agent.session(place.workspace(), None).unwrap();
    let inner = agent.clone();
    let close = Blocking(move |_: CommandRequest, _: Context| {
        inner.close().wait()?;
        Ok("closed")
    });
    other.register_command("close", close).unwrap();
    let _ = other.send("/close", None).wait();
    kit::eventually("the agent's end", || agent.is_closed());
}

/// A tool that runs a prompt in another session of the same agent.
#[test]
fn a_function_runs_another_session() {
    let place = Place::new("call ask {}\nend\nsay done\n");
    std::fs::write(place.dir.join("other.txt"), "say from the other\n").unwrap();
    let models = "models \"main\" { script = \"turns.txt\" } models \"other\" { script = \"other.txt\" }";
    std::fs::write(place.dir.join("agent.acl"), format!("default_model = \"script/main\"\nproviders \"script\" {{ {models} }}\n")).unwrap();
    let agent = place.agent();
    let folder = place.workspace();
    let inner = agent.clone();
    let ask = move |_: Value, _: ToolContext| {
        let (agent, folder) = (inner.clone(), folder.clone());
        async move {
            let session = agent.session_async(folder, Some(SessionOptions::new().with_model("script/other"))).await?;
            Ok(session.send("?", None).await?.text)
        }
    };
    agent.register_tool(Tool::with_schema::<Value>("ask", "x", json!({ "type": "object" }), ask).read_only()).unwrap();
    let session = agent.session(place.workspace(), None).unwrap();
    assert_eq!(session.send("go", None).wait().unwrap().text, "done");
    let traces = serde_json::to_string(&session.history().wait().unwrap()).unwrap();
    assert!(traces.contains("from the other"), "{traces}");
    agent.close().wait().unwrap();
}

/// What is not built says so by name.
#[test]
fn what_is_not_built_is_refused_by_name() {
    let place = Place::new("say .\n");
    let (agent, session) = (place.agent(), place.session());
    let refused = |name: &str, err: Option<a3s_code_core::CodeError>| {
        let err = err.unwrap_or_else(|| panic!("{name} was taken"));
        assert!(err.code() == codes::UNSUPPORTED_OPERATION && err.op() == name && err.message().contains(name), "{err:?}");
    };
    refused("agent.refresh_mcp_tools", agent.refresh_mcp_tools().wait().err());
    refused("agent.replace_session_async", agent.replace_session_async(&session, SessionOptions::new()).wait().err());
    refused("session.resume_run", session.resume_run("x").wait().err());
    refused("session.patch_file", session.patch_file("x", "y").wait().err());
    refused("session.add_mcp", futures::executor::block_on(session.add_mcp(json!({}))).err());
    assert!(!session.has_queue() && !session.has_memory());
}

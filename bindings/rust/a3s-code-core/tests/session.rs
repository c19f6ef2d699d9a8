//! Agents and sessions: every operation, awaited and waited for; wrong, closed and dropped ones.

mod kit;

use a3s_code_core::{
    codes, Agent, AgentEvent, AgentSession, ConfirmationPolicy, FileSessionStore, MemorySessionStore, Message, PermissionPolicy,
    ReadFileOptions, Result, SessionOptions, TimeoutAction,
};
use kit::Place;
use serde_json::json;

#[test]
fn a_prompt_is_answered() {
    let place = Place::new("say Hello.\n");
    let session = place.session();
    let result = session.send("Say hello.", None).wait().unwrap();
    assert_eq!((result.text.as_str(), result.tool_calls_count, result.verification_status.as_str()), ("Hello.", 0, "skipped"));
    assert_eq!(result.to_string(), "Hello.");
    assert!(!result.has_pending_verification());
    let runs = session.runs().wait().unwrap();
    assert_eq!((runs.len(), runs[0].status.as_str(), runs[0].result_text.as_deref()), (1, "completed", Some("Hello.")));
    assert_eq!(runs[0].id, result.run_id);
    assert_eq!(session.run_snapshot(&result.run_id).wait().unwrap().as_ref(), Some(&runs[0]));
    assert_eq!(session.run_snapshot("nobody").wait().unwrap(), None);
    assert_eq!(session.current_run().wait().unwrap(), None);
    assert_eq!(session.active_tools().wait().unwrap(), vec![]);
    let history = session.history().wait().unwrap();
    assert_eq!(history, vec![Message::user("Say hello."), Message::assistant("Hello.")]);
    assert_eq!(history[1].text(), "Hello.");
}

#[tokio::test]
async fn a_prompt_is_awaited() -> Result<()> {
    let place = Place::new("say Hello.\nend\nsay Again.\n");
    let agent = Agent::new(place.acl()).await?;
    let session = agent.session_builder(place.workspace()).build().await?;
    assert_eq!(session.send("one", None).await?.text, "Hello.");
    assert_eq!(session.send("two", None).await?.text, "Again.");
    session.save().await?;
    assert_eq!(agent.list_sessions().await?, vec![session.session_id().to_owned()]);
    assert!(agent.close_session(session.session_id()).await?);
    assert!(!agent.close_session("nobody").await?);
    assert!(session.is_closed() && !agent.is_closed());
    agent.close().await?;
    agent.close().await?;
    assert!(agent.info().await?.closed);
    Ok(())
}

#[test]
fn a_history_of_ones_own_leaves_the_transcript() {
    let place = Place::new("say Hallo.\n");
    let session = place.session();
    let context = [Message::user("We speak German."), Message::assistant("Gut.")];
    assert_eq!(session.send("Say hello.", Some(&context)).wait().unwrap().text, "Hallo.");
    assert_eq!(session.history().wait().unwrap(), vec![]);
}

#[test]
fn recorded_events_are_read_again() {
    let place = Place::new("think Hm.\nsay Hello.\n");
    let session = place.session();
    let (events, run) = session.stream("go", None).wait().unwrap();
    let told: Vec<_> = events.envelopes().into_iter().collect();
    let id = run.id().to_owned();
    assert_eq!(session.run_events(&id).wait().unwrap(), told);
    assert_eq!(session.run_events("nobody").wait().unwrap(), vec![]);
    let page = session.run_event_page(&id, None, 2).wait().unwrap().unwrap();
    assert_eq!((page.events.as_slice(), page.has_more, page.next_after_sequence), (&told[..2], true, Some(1)));
    assert_eq!((page.first_available_sequence, page.latest_sequence_exclusive, page.retention_gap), (Some(0), told.len() as i64, false));
    let rest = session.run_event_page(&id, page.next_after_sequence, 100).wait().unwrap().unwrap();
    assert_eq!((rest.events.as_slice(), rest.has_more), (&told[2..], false));
    assert_eq!(session.run_event_page("nobody", None, 1).wait().unwrap(), None);
    assert_eq!(session.run_event_page(&id, None, 0).wait().unwrap_err().code(), codes::INVALID_REQUEST);
    assert_eq!(told[0].metadata.as_ref().unwrap().run_id.as_ref(), id);
}

#[test]
fn a_run_is_cancelled() {
    let place = Place::new("say A\nwait 60000\nsay B\n");
    let session = place.session();
    assert!(!session.cancel().wait().unwrap());
    let (mut events, run) = session.stream("go", None).wait().unwrap();
    for event in &mut events {
        if let AgentEvent::TextDelta { text } = event {
            assert_eq!(text, "A");
            break;
        }
    }
    assert!(!run.is_finished());
    assert_eq!(session.send("two at once", None).wait().unwrap_err().code(), codes::SESSION_BUSY);
    assert!(!session.cancel_run("nobody").wait().unwrap());
    assert!(session.cancel_run(run.id()).wait().unwrap());
    assert!(!session.cancel().wait().unwrap());
    let last = events.iter().last().unwrap();
    let err = last.to_error().unwrap();
    assert!(last.is_terminal());
    assert_eq!((err.code(), err.kind()), (codes::CANCELLED, codes::kinds::CANCELLED));
    assert_eq!(run.wait().unwrap_err().code(), codes::CANCELLED);
    assert!(run.is_finished());
    assert_eq!(run.snapshot().unwrap().unwrap().status, "cancelled");
}

#[test]
fn questions_are_answered() {
    let place = Place::new("call write {\"file_path\":\"a.txt\",\"content\":\"x\"}\nend\ncall write {\"file_path\":\"b.txt\",\"content\":\"x\"}\nend\nsay done\n");
    let options = SessionOptions::new()
        .with_permission_policy(PermissionPolicy::new())
        .with_confirmation_policy(ConfirmationPolicy::enabled().with_timeout(60_000, TimeoutAction::Reject));
    let session = place.session_with(options);
    let (events, _run) = session.stream("go", None).wait().unwrap();
    let mut asked = Vec::new();
    for event in events {
        if let AgentEvent::ConfirmationRequired { tool_id, tool_name, args, .. } = &event {
            assert_eq!((tool_name.as_str(), &args["content"]), ("write", &json!("x")));
            let pending = session.pending_confirmations().wait().unwrap();
            assert_eq!((pending.len(), &pending[0].tool_id), (1, tool_id));
            let approve = asked.is_empty();
            assert!(session.confirm_tool_use(tool_id, approve, Some("because")).wait().unwrap());
            assert!(!session.confirm_tool_use(tool_id, true, None).wait().unwrap());
            asked.push(tool_id.clone());
        }
    }
    assert_eq!(asked.len(), 2);
    assert_eq!(session.cancel_confirmations().wait().unwrap(), 0);
    assert!(place.workspace().join("a.txt").exists() && !place.workspace().join("b.txt").exists());
}

#[test]
fn tools_are_called_directly() {
    let place = Place::new("say .\n");
    place.write("src/a.txt", "one\ntwo\nthree\n");
    let session = place.session();
    assert!(session.read_file("src/a.txt").wait().unwrap().contains("two"));
    let lines = session.read_file_with_options("src/a.txt", ReadFileOptions { offset: Some(1), limit: Some(1) }).wait().unwrap();
    assert!(lines.contains("two") && !lines.contains("one"), "{lines}");
    assert!(session.write_file("b/c.txt", "hello").wait().unwrap().is_ok());
    assert!(session.edit_file("b/c.txt", "hello", "good bye", false).wait().unwrap().is_ok());
    assert!(session.edit_file("b/c.txt", "o", "0", true).wait().unwrap().is_ok());
    assert_eq!(std::fs::read_to_string(place.workspace().join("b/c.txt")).unwrap(), "g00d bye");
    assert!(session.ls(None).wait().unwrap().output.contains("src"));
    assert!(session.ls(Some("src")).wait().unwrap().output.contains("a.txt"));
    assert_eq!(session.glob("**/*.txt").wait().unwrap().len(), 2);
    assert!(session.grep("tw.").wait().unwrap().contains("two"));
    assert_eq!(session.bash("echo $((6*7))").wait().unwrap().trim(), "42");
    let failed = session.tool("read", json!({ "file_path": "nobody.txt" })).wait().unwrap();
    assert!(!failed.is_ok() && failed.error_kind.is_some());
    let err = session.read_file("nobody.txt").wait().unwrap_err();
    assert_eq!((err.code(), err.op(), &err.details()["exit_code"]), (codes::TOOL_ERROR, "tool.read", &json!(1)));
    assert!(!session.tool("nobody", json!({})).wait().unwrap().is_ok());
    let names = session.tool_names().wait().unwrap();
    assert!(names.iter().any(|n| n == "grep"), "{names:?}");
    assert_eq!(session.tool_definitions().wait().unwrap().len(), names.len());
    assert!(session.list_commands().wait().unwrap().iter().any(|c| c.name == "help" || c.name == "/help"));
    assert!(session.trace_events().wait().unwrap().iter().any(|t| t.name == "bash"));
}

/// Glob gives pages of a thousand paths.
#[tokio::test]
async fn many_paths_come_page_by_page() -> Result<()> {
    let place = Place::new("say .\n");
    for i in 0..2500 {
        std::fs::write(place.workspace().join(format!("{i:04}.txt")), "").unwrap();
    }
    let session = place.session();
    let mut paths = session.glob("*.txt").await?;
    assert_eq!(paths, session.glob("*.txt").wait()?);
    paths.dedup();
    assert_eq!(paths.len(), 2500);
    Ok(())
}

#[test]
fn long_output_is_an_artifact() {
    let place = Place::new("call bash {\"command\":\"seq 1 60000\"}\nend\nsay done\n");
    let session = place.session();
    let (events, _run) = session.stream("go", None).wait().unwrap();
    let output = events.into_iter().find_map(|e| match e {
        AgentEvent::ToolEnd { output, .. } => Some(output),
        _ => None,
    });
    let output = output.unwrap();
    let uri =
        output.split_whitespace().find(|w| w.contains("a3s://")).map(|w| w.trim_matches(|c: char| !c.is_alphanumeric())).expect("a URI");
    let artifact = session.get_artifact(uri).wait().unwrap().expect("the artifact");
    assert!(artifact.content.contains("59999"));
    assert_eq!(session.get_artifact("a3s://nobody").wait().unwrap(), None);
}

#[test]
fn a_closed_session_is_read_only() {
    let place = Place::new("say Hello.\n");
    let agent = place.agent();
    let session = agent.session(place.workspace(), None).unwrap();
    session.send("go", None).wait().unwrap();
    session.close().wait().unwrap();
    session.close().wait().unwrap();
    let closed = |code: &str| assert_eq!(code, codes::SESSION_CLOSED);
    closed(session.send("go", None).wait().unwrap_err().code());
    closed(session.stream("go", None).wait().unwrap_err().code());
    closed(session.tool("ls", json!({})).wait().unwrap_err().code());
    assert_eq!((session.runs().wait().unwrap().len(), session.history().wait().unwrap().len()), (1, 2));
    assert!(session.is_closed() && session.info().wait().unwrap().closed);
    agent.close().wait().unwrap();
    closed(agent.session(place.workspace(), None).unwrap_err().code());
    assert_eq!(session.runs().wait().unwrap().len(), 1);
}

/// The control stream ends with the agent; what is awaited then still ends.
#[tokio::test]
async fn a_closed_agent_still_answers() -> Result<()> {
    let place = Place::new("say Hello.\n");
    let agent = Agent::new(place.acl()).await?;
    let session = agent.session_builder(place.workspace()).build().await?;
    session.send("go", None).await?;
    agent.close().await?;
    agent.close().await?;
    assert_eq!(session.send("go", None).await.unwrap_err().code(), codes::SESSION_CLOSED);
    session.save().await?;
    session.close().await?;
    assert_eq!(session.get_artifact("a3s://x").await?, None);
    Ok(())
}

#[test]
fn a_session_is_resumed() {
    let place = Place::new("say one\nend\nsay two\n");
    let stores: [(&str, SessionOptions); 2] = [
        ("file", SessionOptions::new().with_session_store(FileSessionStore::new(place.dir.join("store")))),
        ("memory", SessionOptions::new().with_session_store(MemorySessionStore::new())),
    ];
    for (name, options) in stores {
        let agent = place.agent();
        let options = options.with_tenant_id("them").with_principal("me").with_correlation_id("c").with_agent_template_id("t");
        let session = agent.session(place.workspace(), Some(options.clone())).unwrap();
        let id = session.session_id().to_owned();
        assert_eq!(session.send("first", None).wait().unwrap().text, "one", "{name}");
        session.save().wait().unwrap();
        let busy = agent.resume_session(&id, options.clone()).unwrap_err();
        assert_eq!(busy.code(), codes::SESSION_BUSY, "{name}: {busy:?}");
        drop(session);
        assert_eq!(agent.list_stored_sessions(options.session_store.clone()).wait().unwrap(), vec![id.clone()], "{name}");
        let bare = SessionOptions { session_store: options.session_store.clone(), ..SessionOptions::new() };
        let session = agent.resume_session(&id, bare).unwrap();
        let labels =
            (session.session_id(), session.tenant_id(), session.principal(), session.correlation_id(), session.agent_template_id());
        assert_eq!(labels, (id.as_str(), Some("them"), Some("me"), Some("c"), Some("t")), "{name}");
        assert_eq!(session.history().wait().unwrap().len(), 2, "{name}");
        assert_eq!(session.runs().wait().unwrap().len(), 1, "{name}");
        let lost = agent.resume_session("nobody", options).unwrap_err();
        assert_eq!(lost.code(), codes::SESSION_ERROR, "{name}");
    }
}

/// A store in memory is gone with whoever could reach it.
#[test]
fn a_store_in_memory_lives_as_long_as_somebody_holds_it() {
    let place = Place::new("say one\n");
    let agent = place.agent();
    let store = MemorySessionStore::new();
    let twin = store.clone();
    let session = agent.session(place.workspace(), Some(SessionOptions::new().with_session_store(store))).unwrap();
    session.save().wait().unwrap();
    let id = session.session_id().to_owned();
    drop(session);
    assert_eq!(agent.list_stored_sessions(Some((&twin).into())).wait().unwrap(), vec![id]);
    drop(twin);
    assert_eq!(agent.list_stored_sessions(Some(MemorySessionStore::new().into())).wait().unwrap(), Vec::<String>::new());
}

#[test]
fn what_is_wrong_is_said() {
    let place = Place::new("say .\n");
    let err = Agent::open("default_model = \n").unwrap_err();
    assert_eq!((err.code(), err.details().contains_key("line")), (codes::CONFIG_ERROR, true), "{err:?}");
    let err = Agent::open("nobody.acl").unwrap_err();
    assert_eq!((err.code(), err.kind(), err.status()), (codes::CONFIG_ERROR, "invalid", -1), "{err:?}");
    let agent = place.agent();
    let err = agent.session(place.dir.join("nobody"), None).unwrap_err();
    assert_eq!((err.code(), &err.details()["field"]), (codes::SESSION_CONFIGURATION_ERROR, &json!("workspace")));
    assert!(!err.retryable() && !err.message().is_empty() && err.to_string() == err.message());
    let session = agent.session(place.workspace(), None).unwrap();
    let err = session.send("", None).wait().unwrap_err();
    assert_eq!(err.code(), codes::INVALID_REQUEST);
    let err = session.send("a\0b", None).wait().unwrap_err();
    assert_eq!(err.code(), codes::INVALID_REQUEST);
    let text = serde_json::to_value(&err).unwrap();
    assert_eq!(text["code"], codes::INVALID_REQUEST);
    assert_eq!(format!("{:?}", err.clone()), format!("{err:?}"));
}

#[test]
fn what_is_dropped_is_cancelled() {
    let place = Place::new("say A\nwait 60000\n");
    let session = place.session();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let send = session.send("go", None);
        tokio::select! {
            result = send => panic!("it ended with {result:?}"),
            () = async { while session.current_run().await.unwrap().is_none() { tokio::task::yield_now().await } } => {}
        }
    });
    kit::eventually("the end of the run", || session.current_run().wait().unwrap().is_none());
    assert_eq!(session.runs().wait().unwrap()[0].status, "cancelled");
    // The session is free, and nothing of the dropped call is left.
    kit::eventually("no call", || a3s_code_core::stats().unwrap()["calls"] == 0);
    drop(session.tool("bash", json!({ "command": "sleep 60" }))); // never begun
}

/// An operation that was begun by a poll can be waited for.
#[test]
fn a_begun_call_is_waited_for() {
    let place = Place::new("wait 20\nsay Hello.\n");
    let session = place.session();
    let mut call = session.send("go", None);
    assert!(futures::executor::block_on(futures::future::poll_immediate(&mut call)).is_none());
    assert_eq!(format!("{call:?}"), "Call(\"under way\")");
    assert_eq!(call.wait().unwrap().text, "Hello.");
}

#[test]
fn threads_share_everything() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Agent>();
    shared::<AgentSession>();
    shared::<a3s_code_core::CodeError>();
    shared::<a3s_code_core::RunHandle>();
    shared::<a3s_code_core::EventReceiver>();
    shared::<a3s_code_core::SessionOptions>();
    shared::<a3s_code_core::MemorySessionStore>();
    shared::<a3s_code_core::ToolContext>();
    shared::<a3s_code_core::EventEnvelope>();
    fn moved<T: Send + Unpin + 'static>() {}
    moved::<a3s_code_core::Call<()>>();
    moved::<a3s_code_core::Tool>();
    moved::<a3s_code_core::IntoIter>();
    moved::<a3s_code_core::Envelopes>();
}

//! Nothing is left behind: handles, descriptors, threads, tasks. One test, since it looks at the
//! whole process.

mod kit;

use a3s_code_core::host::{Blocking, CommandRequest, ModelChunk, ModelRequest, PermissionCheck, Verdict};
use a3s_code_core::{Agent, Chunks, Context, MemorySessionStore, SessionOptions, Tool};
use futures::StreamExt;
use kit::Place;
use serde_json::{json, Value};

fn count(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}")).expect("proc").count()
}

/// Everything once: an agent, sessions, streams in three executors, a tool, things that are
/// dropped early.
fn round(place: &Place, runtime: &tokio::runtime::Runtime) {
    let agent = Agent::open(place.acl()).unwrap();
    let store = MemorySessionStore::new();
    let session = agent.session(place.workspace(), Some(SessionOptions::new().with_session_store(&store))).unwrap();
    let tool = Tool::with_schema::<Value>("adds", "x", json!({ "type": "object" }), |_, _| async { Ok("1") });
    session.register_tool(tool).unwrap();
    assert_eq!(session.tool("adds", json!({})).wait().unwrap().output, "1");
    extended(&agent, place, runtime);
    let whole = |n: usize| assert!(n > 3, "{n}");
    whole(session.stream("go", None).wait().unwrap().0.into_iter().count());
    whole(futures::executor::block_on(async { session.stream("go", None).await.unwrap().0.count().await }));
    runtime.block_on(async {
        let (events, run) = session.stream("go", None).await.unwrap();
        let (n, result) = futures::join!(events.count(), run);
        whole(n);
        assert_eq!(result.unwrap().text, "Hello.");
        session.save().await.unwrap();
        drop(futures::future::poll_immediate(session.send("begun and dropped", None)).await);
        let _begun = futures::future::poll_immediate(session.events().unwrap().next()).await;
        drop(futures::future::poll_immediate(agent.session_async(place.workspace(), None)).await);
    });
    let (events, _run) = session.stream("left", None).wait().unwrap_or_else(|_| {
        kit::eventually("the end of the dropped call", || session.current_run().wait().unwrap().is_none());
        session.stream("left", None).wait().unwrap()
    });
    assert_eq!(events.into_iter().take(1).count(), 1);
}

/// Extensions that answer, fail, panic, are withdrawn, and are still registered at the end.
fn extended(agent: &Agent, place: &Place, runtime: &tokio::runtime::Runtime) {
    let _inside = runtime.enter();
    let model = |request: ModelRequest, out: Chunks<ModelChunk>| async move {
        out.send("Hello.")?;
        if request.messages.len() > 2 {
            out.cancelled().await;
        }
        Ok(())
    };
    agent.register_model("mine", model).unwrap();
    agent.register_permission_checker("judge", Blocking(|_: PermissionCheck, _: Context| Ok(Verdict::allow()))).unwrap();
    let session = agent.session(place.workspace(), Some(SessionOptions::new().with_model("host/mine"))).unwrap();
    let fails = session.register_command("fails", Blocking(|_: CommandRequest, _: Context| Ok("x".parse::<u8>()?.to_string()))).unwrap();
    assert!(session.send("/fails", None).wait().unwrap().text.contains("invalid digit") && fails.close());
    assert_eq!(session.send("go", None).wait().unwrap().text, "Hello.");
    let (events, run) = session.stream("go", None).wait().unwrap();
    for event in events {
        if matches!(event, a3s_code_core::AgentEvent::TextDelta { .. }) {
            run.cancel();
        }
    }
}

#[test]
fn nothing_is_left() {
    let place = Place::new(&"say Hello.\nend\n".repeat(9));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    (0..3).for_each(|_| round(&place, &runtime)); // what is made once is made now
    kit::nothing_is_left();
    let (descriptors, threads) = (count("fd"), count("task"));
    for _ in 0..30 {
        round(&place, &runtime);
    }
    kit::nothing_is_left();
    kit::eventually("the end of the descriptors", || count("fd") <= descriptors);
    // The Go runtime keeps a few threads for later.
    kit::eventually("the end of the threads", || count("task") <= threads + 8);
    let stats = a3s_code_core::stats().unwrap();
    assert_eq!(stats["handles"], json!({ "agent": 0, "session": 0, "run": 0, "stream": 0, "registration": 0 }), "{stats}");
    assert!(a3s_code_core::build_info().unwrap()["version"].is_string());
    a3s_code_core::repair_signals().unwrap();
}

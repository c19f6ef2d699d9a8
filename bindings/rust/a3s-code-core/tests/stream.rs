//! Streams of events: in tokio, in other executors, in threads; left early, dropped in any order.

mod kit;

use std::future::Future;
use std::pin::Pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use a3s_code_core::{codes, AgentEvent, AgentSession, EventReceiver, FileSessionStore, Result, SessionOptions};
use futures::StreamExt;
use kit::Place;

/// Ten words, a tool, and one more word.
const SCRIPT: &str = "say a\nsay b\nsay c\nsay d\ncall ls {}\nend\nsay e\n";

fn text(events: &[AgentEvent]) -> String {
    let texts = events.iter().filter_map(|e| match e {
        AgentEvent::TextDelta { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<String>().replace('\n', "") // what is said in two lines
}

fn whole(events: &[AgentEvent]) {
    assert_eq!(text(events), "abcde");
    assert!(matches!(&events[0], AgentEvent::Start { prompt } if prompt == "go"));
    assert!(events.iter().any(|e| matches!(e, AgentEvent::ToolStart { id: _, name } if name == "ls")));
    let Some(AgentEvent::End { text, usage, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!((text.as_str(), usage.total_tokens > 0), ("e", true));
    assert_eq!(events.iter().filter(|e| e.is_terminal()).count(), 1);
}

#[tokio::test]
async fn events_are_received_in_tokio() -> Result<()> {
    let place = Place::new(SCRIPT);
    let session = place.session();
    let (mut events, run) = session.stream("go", None).await?;
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        all.push(event);
    }
    whole(&all);
    assert_eq!(events.recv().await, None);
    assert_eq!(run.await?.text, "e");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_is_a_stream() -> Result<()> {
    let place = Place::new(SCRIPT);
    let session = place.session();
    let (mut events, run) = session.stream("go", None).await?;
    let first = events.next().await;
    let mut all: Vec<_> = events.collect().await;
    all.insert(0, first.unwrap());
    whole(&all);
    // The run is read beside the receiver, and awaited in a task of its own.
    let again: Vec<_> = run.events()?.envelopes().map(|e| e.event).collect().await;
    assert_eq!(again, all);
    assert_eq!(tokio::spawn(run).await.unwrap()?.text, "e");
    Ok(())
}

#[test]
fn events_are_received_without_a_runtime() {
    let place = Place::new(SCRIPT);
    let session = place.session();
    // A plain executor that polls on this thread.
    let all = futures::executor::block_on(async {
        let (events, run) = session.stream("go", None).await.unwrap();
        let (all, result) = futures::join!(events.collect::<Vec<_>>(), run);
        assert_eq!(result.unwrap().text, "e");
        all
    });
    whole(&all);
}

#[test]
fn events_are_received_in_smols_executor() {
    let executor = async_executor::Executor::new();
    let places: Vec<Place> = (0..20).map(|_| Place::new(SCRIPT)).collect();
    let tasks = places.iter().map(|place| {
        let (acl, workspace) = (place.acl(), place.workspace());
        executor.spawn(async move {
            let agent = a3s_code_core::Agent::new(acl).await?;
            let session = agent.session_builder(workspace).build().await?;
            let (mut events, run) = session.stream("go", None).await?;
            let mut all = Vec::new();
            while let Some(event) = events.recv().await {
                all.push(event);
            }
            Ok::<_, a3s_code_core::CodeError>((all, run.await?.text))
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        let (all, text) = futures_lite::future::block_on(executor.run(task)).unwrap();
        whole(&all);
        assert_eq!(text, "e");
    }
}

#[test]
fn events_are_iterated() {
    let place = Place::new(SCRIPT);
    let session = place.session();
    let (mut events, run) = session.stream("go", None).wait().unwrap();
    let mut all = Vec::new();
    for event in &mut events {
        let stop = matches!(event, AgentEvent::TextDelta { .. });
        all.push(event);
        if stop {
            break;
        }
    }
    all.extend(events.blocking_recv()); // three ways to go on
    all.extend(events);
    whole(&all);
    assert_eq!(run.wait().unwrap().text, "e");
}

/// One receiver is polled in two runtimes, outside of any, and blocked on.
#[test]
fn a_receiver_moves_between_executors() {
    let place = Place::new("say a\nwait 30\nsay b\nwait 30\nsay c\nwait 30\nsay d\nwait 30\nsay e\n");
    let session = place.session();
    let (mut events, _run) = session.stream("go", None).wait().unwrap();
    let until = |events: &mut a3s_code_core::EventReceiver,
                 word: &str,
                 next: &mut dyn FnMut(&mut a3s_code_core::EventReceiver) -> Option<AgentEvent>| loop {
        match next(events) {
            Some(AgentEvent::TextDelta { text }) if text.trim() == word => return,
            Some(_) => {}
            None => panic!("no {word}"),
        }
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    until(&mut events, "a", &mut |e| first.block_on(e.recv()));
    until(&mut events, "b", &mut |e| runtime().block_on(e.recv()));
    until(&mut events, "c", &mut |e| futures::executor::block_on(e.recv()));
    until(&mut events, "d", &mut |e| e.blocking_recv());
    drop(first);
    until(&mut events, "e", &mut |e| futures_lite::future::block_on(e.recv()));
    assert!(events.into_iter().last().unwrap().is_terminal());
}

/// A waker may panic, as that of an executor that is gone; others are woken all the same.
#[test]
fn a_waker_that_panics_holds_nobody() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("no task is left to be woken");
        }
    }
    let place = Place::new("wait 50\nsay a\nend\nsay b\nend\nsay c\n");
    let session = place.session();
    let (mut events, run) = session.stream("go", None).wait().unwrap();
    pend(&mut events, &Waker::from(Arc::new(Panics)));
    assert_eq!(run.wait().unwrap().text, "a");
    let mut call = session.send("two", None);
    let _ = Pin::new(&mut call).poll(&mut Context::from_waker(&Waker::from(Arc::new(Panics))));
    kit::eventually("the end of the run", || session.runs().wait().unwrap().get(1).is_some_and(|run| run.status == "completed"));
    assert_eq!(futures::executor::block_on(session.send("three", None)).unwrap().text, "c");
    assert!(events.into_iter().last().unwrap().is_terminal());
}

/// A waker may be the last that holds a task, and with it another receiver.
#[test]
fn a_waker_may_hold_a_receiver() {
    struct Holds(#[allow(dead_code)] Mutex<EventReceiver>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    let place = Place::new("wait 60000\n");
    let (one, two) = (place.session(), place.session());
    let (mut held, _run) = one.stream("go", None).wait().unwrap();
    let (mut events, _other) = two.stream("go", None).wait().unwrap();
    let nobody = Waker::noop();
    pend(&mut held, nobody);
    pend(&mut events, &Waker::from(Arc::new(Holds(Mutex::new(held)))));
    pend(&mut events, nobody); // lets go of the other waker
}

/// Polls until it waits, and is not only giving others their turn.
fn pend(events: &mut EventReceiver, waker: &Waker) {
    for _ in 0..20 {
        while events.poll_next_unpin(&mut Context::from_waker(waker)).is_ready() {}
    }
}

/// A future that is dropped between two polls loses no event.
#[tokio::test]
async fn a_dropped_recv_loses_nothing() -> Result<()> {
    let place = Place::new("say a\nwait 5\nsay b\nwait 5\nsay c\nwait 5\nsay d\nwait 5\nsay e\n");
    let session = place.session();
    let (mut events, _run) = session.stream("go", None).await?;
    let mut all = Vec::new();
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => all.push(event),
                None => break,
            },
            () = tokio::time::sleep(std::time::Duration::from_micros(300)) => {}
        }
    }
    assert_eq!(text(&all), "abcde");
    Ok(())
}

#[test]
fn a_failed_run_is_an_event() {
    let place = Place::new("say a\nfail provider no such key\n");
    let session = place.session();
    let (events, run) = session.stream("go", None).wait().unwrap();
    let last = events.into_iter().last().unwrap();
    let AgentEvent::Error { message, code, .. } = &last else { panic!("{last:?}") };
    assert_eq!((code.as_str(), message.contains("no such key")), (codes::LLM_ERROR, true), "{last:?}");
    assert_eq!(last.to_error().unwrap(), run.wait().unwrap_err());
}

#[test]
fn a_stream_that_is_left_leaves_the_run() {
    let place = Place::new("say a\nwait 200\nsay b\n");
    let session = place.session();
    let (events, run) = session.stream("go", None).wait().unwrap();
    drop(events);
    assert_eq!(session.send("two", None).wait().unwrap_err().code(), codes::SESSION_BUSY);
    assert_eq!(run.wait().unwrap().text, "a\nb");
    let (events, run) = session.stream("again", None).wait().unwrap_or_else(|e| panic!("{e:?}"));
    drop((events, run));
    kit::eventually("the end of the run", || session.current_run().wait().unwrap().is_none());
    assert_eq!(session.runs().wait().unwrap().len(), 2);
}

/// Agent, session, receiver and run, dropped in every order while the run goes on.
#[test]
fn things_are_dropped_in_any_order() {
    let place = Place::new("say a\nwait 60000\n");
    let mut orders = vec![vec![]];
    for _ in 0..4 {
        orders = orders
            .into_iter()
            .flat_map(|o: Vec<usize>| (0..4).filter(|i| !o.contains(i)).map(|i| [o.clone(), vec![i]].concat()).collect::<Vec<_>>())
            .collect();
    }
    for order in orders {
        let agent = place.agent();
        let session = agent.session(place.workspace(), None).unwrap();
        let (mut events, run) = session.stream("go", None).wait().unwrap();
        assert!(matches!(events.blocking_recv(), Some(AgentEvent::Start { .. })));
        let mut held: Vec<Option<Box<dyn std::any::Any>>> =
            vec![Some(Box::new(agent)), Some(Box::new(session)), Some(Box::new(events)), Some(Box::new(run))];
        for i in order {
            held[i] = None;
        }
    }
}

#[tokio::test]
async fn a_sessions_own_stream_tells_of_all_runs() -> Result<()> {
    let place = Place::new("say a\nend\nsay b\n");
    let session = place.session();
    let events = session.events()?;
    session.send("one", None).await?;
    session.send("two", None).await?;
    session.close().await?;
    let all: Vec<_> = events.envelopes().collect().await;
    let ends = all.iter().filter(|e| e.event.is_terminal()).count();
    let runs: std::collections::BTreeSet<_> = all.iter().filter_map(|e| e.metadata.as_ref()).map(|m| Arc::clone(&m.run_id)).collect();
    assert_eq!((ends, runs.len()), (2, 2));
    assert_eq!(session.events().map(|e| e.into_iter().count()).unwrap_or(0), 0);
    Ok(())
}

/// A run without a reader and without a store is not held up for ever, and a session that is
/// closed under a waiting reader ends its stream.
#[test]
fn a_session_that_is_closed_ends_its_streams() {
    let place = Place::new("say a\nwait 60000\n");
    let session = place.session();
    let (events, _run) = session.stream("go", None).wait().unwrap();
    let (asynchronous, _) = (session.events().unwrap(), ());
    let blocked = std::thread::spawn(move || events.into_iter().collect::<Vec<_>>());
    let polled = std::thread::spawn(move || futures::executor::block_on(asynchronous.collect::<Vec<_>>()));
    kit::eventually("the run", || session.current_run().wait().unwrap().is_some_and(|r| r.event_count >= 3));
    session.close().wait().unwrap();
    for events in [blocked.join().unwrap(), polled.join().unwrap()] {
        assert_eq!(events.last().and_then(AgentEvent::to_error).unwrap().code(), codes::CANCELLED, "{events:?}");
    }
}

/// Many sessions, many threads, every operation: nothing is lost, nothing hangs.
#[test]
fn threads_storm() {
    const SAYS: usize = 40;
    let place = Place::new(&format!("{}call ls {{}}\nend\nsay end\nend\n", "say x\n".repeat(SAYS)).repeat(3));
    let agent = place.agent();
    let work = |session: &AgentSession, i: usize| {
        for _ in 0..3 {
            let events: Vec<_> = match i % 3 {
                0 => session.stream("go", None).wait().unwrap().0.into_iter().collect(),
                1 => futures::executor::block_on(async { session.stream("go", None).await.unwrap().0.collect().await }),
                _ => {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async { session.stream("go", None).await.unwrap().0.collect().await })
                }
            };
            assert_eq!(text(&events), format!("{}end", "x".repeat(SAYS)));
            assert!(events.last().unwrap().is_terminal());
        }
        session.runs().wait().unwrap().len()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12)
            .map(|i| {
                let (agent, place) = (&agent, &place);
                scope.spawn(move || {
                    let session = agent.session(place.workspace(), None).unwrap();
                    std::thread::scope(|inner| {
                        inner.spawn(|| (0..50).for_each(|_| drop((session.history().wait().unwrap(), session.is_closed()))));
                        inner.spawn(|| futures::executor::block_on(async { assert!(session.read_file("nobody").await.is_err()) }));
                        assert_eq!(work(&session, i), 3);
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// The program ends while streams are open, awaited and blocked on.
#[test]
fn a_process_ends_with_open_streams() {
    if std::env::var_os("A3S_TEST_LEAVE").is_some() {
        let place = std::mem::ManuallyDrop::new(Place::new("say a\nwait 60000\n"));
        let agent = place.agent();
        let sessions: Vec<_> = (0..3).map(|_| agent.session(place.workspace(), None).unwrap()).collect();
        for (i, session) in sessions.iter().enumerate() {
            let (events, run) = session.stream("go", None).wait().unwrap();
            std::thread::spawn(move || if i == 0 { events.into_iter().count() } else { futures::executor::block_on(events.count()) });
            std::thread::spawn(move || futures::executor::block_on(run));
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        println!("{}", place.dir.display());
        std::process::exit(7);
    }
    let me = std::env::current_exe().unwrap();
    let out =
        Command::new(me).args(["--exact", "a_process_ends_with_open_streams", "--nocapture"]).env("A3S_TEST_LEAVE", "1").output().unwrap();
    assert_eq!(out.status.code(), Some(7), "{out:?}");
    let text = String::from_utf8_lossy(&out.stdout);
    let dir = text.lines().find(|l| l.contains("a3s-rust-")).unwrap_or_default();
    let _ = std::fs::remove_dir_all(dir.trim_start_matches(|c| c != '/'));
}

/// A program that is killed leaves a session that is resumed.
#[test]
fn a_killed_program_is_resumed() {
    if let Some(dir) = std::env::var_os("A3S_TEST_DIE") {
        let dir = std::path::PathBuf::from(dir);
        let agent = a3s_code_core::Agent::open(dir.join("agent.acl").to_string_lossy()).unwrap();
        let options = SessionOptions::new().with_session_store(FileSessionStore::new(dir.join("store"))).with_session_id("s");
        let session = agent.session(dir.join("workspace"), Some(options)).unwrap();
        let (mut events, _run) = session.stream("go", None).wait().unwrap();
        while !matches!(events.blocking_recv(), Some(AgentEvent::TextDelta { .. }) | None) {}
        std::process::abort();
    }
    let place = Place::new("say a\nwait 60000\n");
    let me = std::env::current_exe().unwrap();
    let status = Command::new(me).args(["--exact", "a_killed_program_is_resumed"]).env("A3S_TEST_DIE", &place.dir).output().unwrap().status;
    assert_eq!(status.code(), None, "it died of a signal");
    let options = SessionOptions::new().with_session_store(FileSessionStore::new(place.dir.join("store")));
    let session = place.agent().resume_session("s", options).unwrap();
    let run = session.runs().wait().unwrap().pop().unwrap();
    assert_eq!(run.status, "failed");
    let last = session.run_events(&run.id).wait().unwrap().pop().unwrap();
    assert_eq!(last.event.to_error().unwrap().code(), codes::INTERRUPTED);
}

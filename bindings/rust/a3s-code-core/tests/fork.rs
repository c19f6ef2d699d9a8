//! A child that is forked without exec is told so at once, whatever it does; its parent goes on.

mod kit;

use std::ffi::c_int;

use a3s_code_core::{Agent, AgentEvent};
use futures::StreamExt;
use kit::Place;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

#[test]
fn a_forked_child_is_told() {
    let place = Place::new("say a\nwait 300\nsay b\n");
    let agent = place.agent();
    let session = agent.session(place.workspace(), None).unwrap();
    let (mut events, run) = session.stream("go", None).wait().unwrap();
    let first = futures::executor::block_on(events.next()); // the reactor watches this stream
    assert!(matches!(first, Some(AgentEvent::Start { .. })));
    // SAFETY: the child calls nothing but this crate, which answers, and _exit.
    let child = unsafe { fork() };
    if child == 0 {
        let told = |result: Result<(), a3s_code_core::CodeError>| result.is_err_and(|e| e.code() == "FORKED");
        let fine = told(session.send("go", None).wait().map(drop))
            && told(futures::executor::block_on(session.send("go", None)).map(drop))
            && told(futures::executor::block_on(session.save()))
            && told(Agent::open(place.acl()).map(drop))
            && told(run.snapshot().map(drop))
            && session.is_closed()
            && std::iter::from_fn(|| futures::executor::block_on(events.next())) // what was read before the fork is still there
                .find_map(|e| e.to_error())
                .is_some_and(|e| e.code() == "FORKED")
            && events.blocking_recv().is_none();
        drop((events, run, session, agent)); // waits for nothing
                                             // SAFETY: ends the child without what the test's own process would do at its end.
        unsafe { _exit(if fine { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(status >> 8, 7, "the child ended with status {status:#x}");
    let rest: Vec<AgentEvent> = futures::executor::block_on(events.collect());
    assert!(matches!(rest.last(), Some(AgentEvent::End { .. })), "{rest:?}");
}

//! Uses what the test added, through the Rust binding.
use a3s_code_core::host::{ProbeAnswer, ProbeQuestion};
use a3s_code_core::{Agent, AgentEvent, Context, Handlers, SessionOptions};
use serde_json::json;

/// The event is a variant.
fn seen(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ProbeSeen { .. })
}

fn main() -> Result<(), a3s_code_core::CodeError> {
    let agent = Agent::open(r#"default_model = "offline/search""#)?;
    let look = |q: ProbeQuestion, _: Context| Ok(ProbeAnswer { seen: format!("Rust saw {}", q.word), ..Default::default() });
    agent.register_extension("probe", json!({ "name": "p", "depth": 2 }), Handlers::new().on_blocking("look", look))?;
    let session = agent.session(".", Some(SessionOptions::new().with_probe_depth(3)))?;
    assert!(a3s_code_core::agent_event_types_v1().contains(&"probe_seen"));
    let _: fn(&AgentEvent) -> bool = seen;
    println!("{}", agent.probe("p", "hello").wait()?["seen"].as_str().unwrap_or("nothing"));
    session.close().wait()?;
    agent.close().wait()
}

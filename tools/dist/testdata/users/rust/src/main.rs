use a3s_code_core::{build_info, Agent, AgentEvent, Result};

fn main() -> Result<()> {
    let agent = Agent::open("agent.acl")?;
    let session = agent.session("workspace", None)?;
    print!("{} ", build_info()?["version"].as_str().unwrap_or("none"));
    let (events, _run) = session.stream("where is the needle?", None).wait()?;
    for event in events {
        match event {
            AgentEvent::ToolStart { name, .. } => print!("{name}: "),
            AgentEvent::End { text, .. } => println!("{text}"),
            _ => {}
        }
    }
    Ok(())
}

//! Stops a run that takes too long.

use a3s_code_core::{Agent, AgentEvent, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::new("agent.acl").await?;
    let session = agent.session_builder("workspace").build().await?;
    let (mut events, run) = session.stream("Count to a million.", None).await?;
    while let Some(event) = events.recv().await {
        match event {
            AgentEvent::TextDelta { text } => {
                println!("{text}");
                run.cancel(); // a run always ends with one terminal event
            }
            AgentEvent::Error { code, .. } => println!("error: {code}"),
            _ => {}
        }
    }
    for run in session.runs().await? {
        println!("run: {}", run.status);
    }
    agent.close().await
}

//! Streams a prompt and shows the answer and the tool calls as they come.

use a3s_code_core::{Agent, AgentEvent, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::new("agent.acl").await?;
    // Without a policy a model may read and nothing else.
    let session = agent.session_builder("workspace").build().await?;
    let (mut events, run) = session.stream("What does hello.py print?", None).await?;
    while let Some(event) = events.recv().await {
        match event {
            AgentEvent::TextDelta { text } => print!("{text}"),
            AgentEvent::ToolStart { name, .. } => println!("\n→ {name}"),
            AgentEvent::End { .. } => println!(),
            _ => {}
        }
    }
    run.await?; // what the run failed with, if it did
    agent.close().await
}

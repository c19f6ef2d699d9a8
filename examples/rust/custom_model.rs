//! Brings its own model, which gets the conversation and answers in pieces.

use a3s_code_core::host::{self, Chunks, Model, ModelChunk, ModelRequest, ModelResult};
use a3s_code_core::{Agent, AgentEvent, ContentBlock, Result};
use serde_json::json;

struct Oracle;

impl Model for Oracle {
    async fn stream(&self, request: ModelRequest, out: Chunks<ModelChunk>) -> host::Result<ModelResult> {
        let last = request.messages.last().map_or(&[][..], |message| &message.content);
        let found = last.iter().find_map(|block| match block {
            ContentBlock::ToolResult { content, .. } => Some(content.as_str()),
            _ => None,
        });
        if let Some(content) = found {
            out.send("The motto is:\n")?;
            out.send(content)?;
        } else {
            out.send("Let me ")?;
            out.send("look.")?;
            out.send(ModelChunk::tool_call("call-1", "read", json!({ "file_path": "motto.txt" })))?;
        }
        Ok(ModelResult::default()) // all was sent
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::new("agent.acl").await?;
    agent.register_model("oracle", Oracle)?; // agent.acl names it as host/oracle
    let session = agent.session_builder("workspace").build().await?;
    let (mut events, run) = session.stream("What is the motto?", None).await?;
    while let Some(event) = events.recv().await {
        match event {
            AgentEvent::TextDelta { text } => print!("{text}"),
            AgentEvent::ToolStart { name, .. } => println!("\n→ {name}"),
            AgentEvent::End { .. } => println!(),
            _ => {}
        }
    }
    run.await?;
    agent.close().await
}

//! Is asked before a tool runs, and decides by the arguments of the call.

use a3s_code_core::{Agent, AgentEvent, ConfirmationPolicy, PermissionPolicy, Result, SessionOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::new("agent.acl").await?;
    let options = SessionOptions::new()
        .with_permission_policy(PermissionPolicy::new()) // which asks
        .with_confirmation_policy(ConfirmationPolicy::enabled());
    let session = agent.session_builder("workspace").options(options).build().await?;

    let (mut events, run) = session.stream("Write the plan and the settings.", None).await?;
    while let Some(event) = events.recv().await {
        match event {
            AgentEvent::ConfirmationRequired { tool_id, tool_name, args, .. } => {
                let path = args["file_path"].as_str().unwrap_or("");
                println!("? {tool_name} {path}");
                let refusal = (!path.starts_with("docs/")).then_some("only docs/ may change");
                println!("{}", refusal.map_or("yes".into(), |why| format!("no: {why}")));
                session.confirm_tool_use(&tool_id, refusal.is_none(), refusal).await?;
            }
            AgentEvent::ToolEnd { name, exit_code, .. } => println!("{name}: exit code {exit_code}"),
            AgentEvent::End { text, .. } => println!("{text}"),
            _ => {}
        }
    }
    run.await?;
    agent.close().await
}

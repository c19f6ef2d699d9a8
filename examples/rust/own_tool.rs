//! A function of this program as a tool of the model, and questions before other tools run; in
//! tokio.
//!
//!     cd bindings/rust && cargo run --bin own_tool -- agent.acl . "How long is the README?"

use a3s_code_core::{
    Agent, AgentEvent, ConfirmationPolicy, Json, PermissionPolicy, Result, SessionOptions, Tool,
};

/// Arguments of the tool; the model sees these words.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    /// Path of a file in the workspace.
    path: String,
}

#[derive(serde::Serialize)]
struct Size {
    lines: usize,
    bytes: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [config, workspace, prompt] = &args[..] else {
        eprintln!("usage: own_tool CONFIG.acl WORKSPACE PROMPT");
        std::process::exit(2);
    };
    let agent = Agent::new(config).await?;
    // Our own tool runs; a shell command is a question.
    let options = SessionOptions::new()
        .with_permission_policy(
            PermissionPolicy::strict()
                .allow("count")
                .allow("read*")
                .ask("bash*"),
        )
        .with_confirmation_policy(ConfirmationPolicy::enabled());
    let session = agent
        .session_builder(workspace)
        .options(options)
        .build()
        .await?;

    let root = std::path::PathBuf::from(session.workspace());
    session.register_tool(
        Tool::new::<Count>(
            "count",
            "Counts the lines and bytes of a file.",
            move |args, ctx| {
                let file = root.join(&args.path);
                async move {
                    ctx.emit(format!("reading {}\n", args.path));
                    let text = std::fs::read_to_string(file)?; // an error is a failed result that the model sees
                    Ok(Json(Size {
                        lines: text.lines().count(),
                        bytes: text.len(),
                    }))
                }
            },
        )
        .read_only(),
    )?;

    let (mut events, run) = session.stream(prompt, None).await?;
    while let Some(event) = events.recv().await {
        match event {
            AgentEvent::TextDelta { text } => print!("{text}"),
            AgentEvent::ToolOutputDelta { delta, .. } => print!("  {delta}"),
            AgentEvent::ToolEnd {
                name,
                output,
                exit_code,
                ..
            } => println!("→ {name} ({exit_code}): {output}"),
            AgentEvent::ConfirmationRequired {
                tool_id,
                tool_name,
                args,
                ..
            } => {
                println!("? {tool_name} {args}: no");
                session
                    .confirm_tool_use(&tool_id, false, Some("this program runs no commands"))
                    .await?;
            }
            AgentEvent::Error { message, .. } => eprintln!("failed: {message}"),
            _ => {}
        }
    }
    let result = run.await?;
    println!(
        "\n{} tools, {} tokens",
        result.tool_calls_count, result.usage.total_tokens
    );
    agent.close().await
}

//! Asks a question about a folder of code and prints the answer as it comes. Changes nothing.
//!
//!     ./build.sh build
//!     cd bindings/rust && cargo run --bin first_light -- agent.acl . "Where is the configuration parsed?"
//!
//! This is the form without async; stream.rs has the other. agent.acl can be the one line
//! default_model = "offline/search", which needs no model.

use std::io::Write;
use std::process::ExitCode;

use a3s_code_core::{Agent, AgentEvent, FileSessionStore, PermissionPolicy, Result, SessionOptions};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [config, workspace, prompt] = &args[..] else {
        eprintln!("usage: first_light CONFIG.acl WORKSPACE PROMPT");
        return ExitCode::from(2);
    };
    match ask(config, workspace, prompt) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(err) => {
            eprintln!("{}: {err}", err.code());
            ExitCode::FAILURE
        }
    }
}

/// Reading is allowed, everything else is not; the session is kept beside the code.
fn options(workspace: &str) -> SessionOptions {
    let policy =
        ["read*", "ls*", "glob*", "grep*"].into_iter().fold(PermissionPolicy::strict(), PermissionPolicy::allow);
    SessionOptions::new()
        .with_permission_policy(policy)
        .with_session_store(FileSessionStore::new(format!("{workspace}/.a3s/sessions")))
}

/// Prints the events of one run; whether it completed.
fn ask(config: &str, workspace: &str, prompt: &str) -> Result<bool> {
    let agent = Agent::open(config)?;
    let session = agent.session(workspace, Some(options(workspace)))?;
    let (events, run) = session.stream(prompt, None).wait()?;
    let mut completed = false;
    for event in events {
        match event {
            AgentEvent::TextDelta { text } => {
                print!("{text}");
                let _ = std::io::stdout().flush();
            }
            AgentEvent::ToolStart { name, .. } => println!("\n→ {name}"),
            AgentEvent::PermissionDenied { reason, .. } => println!("  not allowed: {reason}"),
            AgentEvent::Error { message, .. } => eprintln!("\nfailed: {message}"),
            AgentEvent::End { .. } => completed = true,
            _ => {}
        }
    }
    session.save().wait()?;
    let status = run.snapshot()?.map_or_else(String::new, |run| run.status);
    println!("\n\nrun {}: {status}; session {} is saved in {workspace}/.a3s/sessions", run.id(), session.session_id());
    Ok(completed)
}

//! Runs tools for the program itself, without a model, and without async code.

use a3s_code_core::{Agent, Result};
use serde_json::json;

fn main() -> Result<()> {
    let agent = Agent::open("agent.acl")?;
    let session = agent.session("workspace", None)?;
    print!("{}", session.read_file("motto.txt").wait()?);
    print!("{}", session.grep("cut").wait()?);
    for path in session.glob("**/*.py").wait()? {
        println!("{path}");
    }
    print!("{}", session.ls(Some("src")).wait()?.output);

    // A tool that fails is a result, no error.
    let read = session.tool("read", json!({ "file_path": "absent.txt" })).wait()?;
    println!("read: exit code {}: {}", read.exit_code, read.output);
    agent.close().wait()
}

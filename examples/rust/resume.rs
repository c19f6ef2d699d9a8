//! Goes on with a conversation that another agent had: it is kept in files.

use a3s_code_core::{Agent, FileSessionStore, Result, SessionOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = SessionOptions::new().with_session_store(FileSessionStore::new("sessions"));

    let agent = Agent::new("agent.acl").await?;
    let diary = options.clone().with_session_id("diary");
    let session = agent.session_builder("workspace").options(diary).build().await?;
    session.send("Today we measured.", None).await?;
    agent.close().await?; // without a save: the journal keeps what was said

    let agent = Agent::new("agent.acl").await?;
    let session = agent.resume_session_async("diary", options).await?;
    session.send("Tomorrow we cut.", None).await?;
    for message in session.history().await? {
        println!("{}: {}", message.role, message.text());
    }
    agent.close().await
}

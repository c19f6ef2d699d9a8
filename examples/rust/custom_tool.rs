//! Gives the model a tool of the program: a function with typed parameters.

use a3s_code_core::{Agent, Result, Tool};

/// Parameters of the tool; the model sees these words.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WordCount {
    /// the text
    text: String,
    /// count only words with so many letters or more
    #[serde(default = "one")]
    min_letters: usize,
}

fn one() -> usize {
    1
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::new("agent.acl").await?;
    let session = agent.session_builder("workspace").build().await?;

    let about = "Counts the words of a text.";
    let tool = Tool::new("word_count", about, |args: WordCount, _ctx| async move {
        let long = |word: &&str| word.chars().count() >= args.min_letters;
        Ok(format!("{} words", args.text.split_whitespace().filter(long).count()))
    });
    session.register_tool(tool.read_only())?;

    let result = session.send("How many long words has the motto?", None).await?;
    println!("{result}\ntool calls: {}", result.tool_calls_count);
    agent.close().await
}

//! The transcript.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Message {
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// What it says, does, or answers.
    #[serde(default, deserialize_with = "crate::wire::or_default")]
    pub content: Vec<ContentBlock>,
    /// The model's reasoning, never mixed into its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Whether an assistant's message was cut off by a cancel or a fault.
    #[serde(default, skip_serializing_if = "crate::wire::is_false")]
    pub partial: bool,
}

impl Message {
    /// The user's words.
    pub fn user(text: impl Into<String>) -> Self {
        Self::of("user", text)
    }

    /// The model's words.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::of("assistant", text)
    }

    fn of(role: &str, text: impl Into<String>) -> Self {
        Self { role: role.to_owned(), content: vec![ContentBlock::Text { text: text.into() }], ..Self::default() }
    }

    /// The text of all text blocks.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|b| match b {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Words.
    Text {
        /// The words.
        #[serde(default)]
        text: String,
    },
    /// A call of a tool.
    ToolUse {
        /// Id of the call.
        #[serde(default)]
        id: String,
        /// Name of the tool.
        #[serde(default)]
        name: String,
        /// Its arguments.
        #[serde(default)]
        input: Value,
        /// The provider's own id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire_id: Option<String>,
    },
    /// What a tool answered.
    ToolResult {
        /// Id of the call.
        #[serde(default)]
        tool_use_id: String,
        /// Its output.
        #[serde(default)]
        content: String,
        /// Whether it failed.
        #[serde(default)]
        is_error: bool,
    },
    /// A block of a newer library.
    #[serde(untagged)]
    Other(Value),
}

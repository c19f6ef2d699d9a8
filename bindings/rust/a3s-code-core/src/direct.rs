//! Tools that this program calls itself, without a model.

use serde_json::{json, Map, Value};

use crate::call::{Call, Step};
use crate::codes;
use crate::error::{CodeError, Result};
use crate::generated::operations as ops;
use crate::session::AgentSession;
use crate::wire;
use crate::ToolResult;

/// Which lines [`AgentSession::read_file_with_options`] gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadFileOptions {
    /// First line, counted from 0; None is the first.
    pub offset: Option<u64>,
    /// Most lines; None is the tool's own limit.
    pub limit: Option<u64>,
}

impl AgentSession {
    /// Runs a tool for this program, not for the model: the permission policy does not apply,
    /// limits and time-outs do. Works during a run. A tool that fails is a result with an exit
    /// code, and so is one that does not exist. Dropping the call stops the tool.
    pub fn tool(&self, name: &str, args: Value) -> Call<ToolResult> {
        self.call(ops::SESSION_TOOL, &json!({ "name": name, "args": args }), wire::decode)
    }

    /// Text of a file, as the tool `read` shows it.
    ///
    /// # Errors
    /// TOOL_ERROR if the tool failed.
    pub fn read_file(&self, path: &str) -> Call<String> {
        self.read_file_with_options(path, ReadFileOptions::default())
    }

    /// Some lines of a file, as the tool `read` shows them.
    ///
    /// # Errors
    /// TOOL_ERROR if the tool failed.
    pub fn read_file_with_options(&self, path: &str, options: ReadFileOptions) -> Call<String> {
        let mut args = json!({ "file_path": path });
        for (name, value) in [("offset", options.offset), ("limit", options.limit)] {
            if let Some(value) = value {
                args[name] = value.into();
            }
        }
        self.output("read", args)
    }

    /// Replaces a file with the tool `write`; folders are made.
    pub fn write_file(&self, path: &str, content: &str) -> Call<ToolResult> {
        self.tool("write", json!({ "file_path": path, "content": content }))
    }

    /// Replaces one passage of a file, or all with `replace_all`, with the tool `edit`.
    pub fn edit_file(&self, path: &str, old: &str, new: &str, replace_all: bool) -> Call<ToolResult> {
        let mut args = json!({ "file_path": path, "old_string": old, "new_string": new });
        if replace_all {
            args["replace_all"] = true.into();
        }
        self.tool("edit", args)
    }

    /// Lists a folder with the tool `ls`; None is the workspace.
    pub fn ls(&self, path: Option<&str>) -> Call<ToolResult> {
        self.tool("ls", path.map_or_else(|| json!({}), |path| json!({ "path": path })))
    }

    /// Output of a shell command, run by the tool `bash`. A command's own exit code is only in
    /// [`tool`](Self::tool)'s result.
    pub fn bash(&self, command: &str) -> Call<String> {
        self.call(ops::SESSION_TOOL, &json!({ "name": "bash", "args": { "command": command } }), |b| {
            Ok(wire::decode::<ToolResult>(b)?.output)
        })
    }

    /// All paths that a pattern matches, page after page.
    ///
    /// # Errors
    /// TOOL_ERROR if the tool failed.
    pub fn glob(&self, pattern: &str) -> Call<Vec<String>> {
        let (session, pattern) = (self.clone(), pattern.to_owned());
        let page = move |cursor: Option<&Value>| {
            let mut args = json!({ "pattern": pattern, "limit": 1000 });
            if let Some(cursor) = cursor {
                args["cursor"] = cursor.clone();
            }
            session.request(ops::SESSION_TOOL, &json!({ "name": "glob", "args": args }))
        };
        let mut paths = Vec::new();
        Call::steps(page(None), move |result| {
            let found = match result.and_then(|json| checked("glob", wire::decode(&json)?)) {
                Ok(found) => found,
                Err(err) => return Step::Done(Err(err)),
            };
            let told = found.metadata.as_ref().and_then(|m| m.get("page")).and_then(Value::as_object);
            let value = |name| told.and_then(|page: &Map<String, Value>| page.get(name)).filter(|v| !v.is_null());
            let count = value("returned_items").and_then(Value::as_u64).unwrap_or(0);
            paths.extend(found.output.lines().take(usize::try_from(count).unwrap_or(usize::MAX)).map(str::to_owned));
            match value("next_cursor").filter(|v| v.as_str() != Some("")).map(|cursor| page(Some(cursor))) {
                None => Step::Done(Ok(std::mem::take(&mut paths))),
                Some(Ok(next)) => Step::More(next),
                Some(Err(err)) => Step::Done(Err(err)),
            }
        })
    }

    /// Lines that a regular expression matches, as the tool `grep` shows them.
    ///
    /// # Errors
    /// TOOL_ERROR if the tool failed.
    pub fn grep(&self, pattern: &str) -> Call<String> {
        self.output("grep", json!({ "pattern": pattern }))
    }

    /// The output of a tool whose failure is an error.
    fn output(&self, name: &'static str, args: Value) -> Call<String> {
        let request = self.request(ops::SESSION_TOOL, &json!({ "name": name, "args": args }));
        Call::steps(request, move |result| Step::Done(result.and_then(|json| Ok(checked(name, wire::decode(&json)?)?.output))))
    }
}

impl ToolResult {
    /// Whether the tool succeeded.
    pub fn is_ok(&self) -> bool {
        self.exit_code == 0
    }
}

fn checked(name: &str, result: ToolResult) -> Result<ToolResult> {
    if result.is_ok() {
        return Ok(result);
    }
    let err = CodeError::new(codes::TOOL_ERROR, &format!("tool.{name}"), format!("Tool error: {name}: {}", result.output));
    let kind = serde_json::to_value(&result.error_kind).unwrap_or_default();
    Err(err.with("exit_code", result.exit_code).with("error_kind", kind))
}

//! Workspaces: files for a session to work in.

use std::future::Future;
use std::sync::Arc;

use super::functions::{texts, Nothing};
use super::{
    Chunks, Context, ExtensionError, Result, WorkspaceCommand, WorkspaceEntry, WorkspaceExit, WorkspaceFile, WorkspaceFound, WorkspaceList,
    WorkspaceOutput, WorkspacePath, WorkspaceRead, WorkspaceSearch, WorkspaceWrite, WorkspaceWritten,
};
use crate::extension::Handlers;

/// Files for a session to work in. Paths are clean, with slashes and relative to the root, which
/// is `"."`. Failures that the model should tell apart have a kind, such as `not_found`: an
/// [`io::Error`](std::io::Error) brings its own along.
pub trait Workspace: Send + Sync + 'static {
    /// Whether the methods block, and so must have threads of their own.
    const BLOCKS: bool = false;
    /// Whether there is a shell, which [`run`](Self::run) answers.
    const RUNS: bool = false;
    /// Whether there are grep and glob, which [`search`](Self::search) answers.
    const SEARCHES: bool = false;

    /// What is at a path: its `kind` (`file`, `dir`, `link` or `unknown`) and, of a file, its
    /// size.
    fn stat(&self, path: &str, context: &Context) -> impl Future<Output = Result<WorkspaceEntry>> + Send;

    /// The entries of a folder, each with its name.
    fn list(&self, path: &str, context: &Context) -> impl Future<Output = Result<Vec<WorkspaceEntry>>> + Send;

    /// A whole file and its version, a token that changes whenever the content does. A file of
    /// more than `max` bytes is refused whether or not it is read.
    fn read(&self, path: &str, max: u64, context: &Context) -> impl Future<Output = Result<WorkspaceFile>> + Send;

    /// Replaces a whole file and makes missing folders. If the file has another version than
    /// `if_version`, or is there although `if_absent`, fail with kind `conflict` and the details
    /// `expected` and `actual`, which is `absent` where there is no file.
    fn write(&self, file: WorkspaceWrite, context: &Context) -> impl Future<Output = Result<WorkspaceWritten>> + Send;

    /// Removes a file. What is not there is no failure; a folder is one, of kind `invalid`.
    fn remove(&self, path: &str, context: &Context) -> impl Future<Output = Result<()>> + Send;

    /// Runs a shell command in the root. When its time is up the command must be ended with all
    /// that it started, and `timed_out` says so.
    fn run(&self, command: WorkspaceCommand, out: Chunks<WorkspaceOutput>) -> impl Future<Output = Result<WorkspaceExit>> + Send {
        let _ = (command, out);
        async { Err(ExtensionError::unsupported("run")) }
    }

    /// Finds files by name or lines by content.
    fn search(&self, search: WorkspaceSearch, context: &Context) -> impl Future<Output = Result<WorkspaceFound>> + Send {
        let _ = (search, context);
        async { Err(ExtensionError::unsupported("search")) }
    }
}

pub(super) fn workspace<W: Workspace>(workspace: W) -> Handlers {
    let workspace = Arc::new(workspace);
    let it = || Arc::clone(&workspace);
    let (stats, lists, reads, writes, removes, runs, searches) = (it(), it(), it(), it(), it(), it(), it());
    Handlers::new()
        .serve("stat", W::BLOCKS, move |p: WorkspacePath, context| {
            let workspace = Arc::clone(&stats);
            async move { workspace.stat(&p.path, &context).await }
        })
        .serve("list", W::BLOCKS, move |p: WorkspacePath, context| {
            let workspace = Arc::clone(&lists);
            async move { Ok(WorkspaceList { entries: workspace.list(&p.path, &context).await? }) }
        })
        .serve("read", W::BLOCKS, move |p: WorkspaceRead, context| {
            let workspace = Arc::clone(&reads);
            async move { workspace.read(&p.path, u64::try_from(p.max).unwrap_or_default(), &context).await }
        })
        .serve("write", W::BLOCKS, move |p: WorkspaceWrite, context| {
            let workspace = Arc::clone(&writes);
            async move { workspace.write(p, &context).await }
        })
        .serve("remove", W::BLOCKS, move |p: WorkspacePath, context| {
            let workspace = Arc::clone(&removes);
            async move { workspace.remove(&p.path, &context).await.map(|()| Nothing {}) }
        })
        .serve("run", W::BLOCKS, move |p: WorkspaceCommand, context| {
            let workspace = Arc::clone(&runs);
            async move { workspace.run(p, Chunks::new(context)).await }
        })
        .serve("search", W::BLOCKS, move |p: WorkspaceSearch, context| {
            let workspace = Arc::clone(&searches);
            async move { workspace.search(p, &context).await }
        })
}

texts! {
    /// Output that is text.
    WorkspaceOutput
}

/// Output that may be no text.
impl From<Vec<u8>> for WorkspaceOutput {
    fn from(data: Vec<u8>) -> Self {
        Self { data: Some(data), ..Self::default() }
    }
}

/// The end of a command whose output was all sent.
impl From<i64> for WorkspaceExit {
    fn from(exit_code: i64) -> Self {
        Self { exit_code, ..Self::default() }
    }
}

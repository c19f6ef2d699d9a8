//! libA3S for Rust: a coding-agent runtime inside your own process.
//!
//! You give it a workspace, a model and a policy, and send it a prompt; it asks the model, checks
//! every tool call, runs what is allowed, tells each step as an event, and keeps what is needed
//! to resume.
//!
//! ```no_run
//! use a3s_code_core::{Agent, AgentEvent, PermissionPolicy, SessionOptions};
//!
//! # async fn f() -> a3s_code_core::Result<()> {
//! let agent = Agent::new("agent.acl").await?;
//! let options = SessionOptions::new().with_permission_policy(PermissionPolicy::strict().allow("read*").allow("grep*"));
//! let session = agent.session_builder(".").options(options).build().await?;
//!
//! let (mut events, run) = session.stream("Where is the configuration parsed?", None).await?;
//! while let Some(event) = events.recv().await {
//!     match event {
//!         AgentEvent::TextDelta { text } => print!("{text}"),
//!         AgentEvent::ToolStart { id: _, name } => println!("\n→ {name}"),
//!         AgentEvent::Error { message, .. } => eprintln!("failed: {message}"),
//!         _ => {}
//!     }
//! }
//! println!("{} tokens", run.await?.usage.total_tokens);
//! # Ok(()) }
//! ```
//!
//! # Async, or not
//!
//! Every operation gives a [`Call`]: `.await` it, or `.wait()` for it. Awaiting works in every
//! executor: events and results wait on one small thread of this crate, and with the feature
//! `tokio` events wait in tokio's own event loop, which must have its I/O driver enabled. Opening
//! an agent or a session takes a thread for as long as it lasts.
//!
//! # Your own parts
//!
//! A function of the program is a tool of the model as a [`Tool`]; models, permission checkers,
//! context providers, commands, session stores, workspaces and more are in the module [`host`].
//! [`Agent::register_extension`] takes any kind that the library knows, as JSON.
//!
//! # The native library
//!
//! `liba3s.so.1` is opened when the first agent is: from `A3S_LIB_DIR` (a folder or a file; nothing
//! else is tried then), from beside the program, from the `build/` of a checkout, or where the
//! dynamic linker looks. It needs glibc 2.34 or newer. With the feature `link` the program is
//! linked with it instead.
//!
//! Loading it starts a Go runtime. Handlers of signals that were installed before have the flag
//! SA_ONSTACK then; one installed later without it, as tokio does for SIGCHLD when the first process
//! is started, must get it: call [`repair_signals`] after that. The library does not work in a
//! child that was forked after it was loaded: every call fails with FORKED there.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod ffi;

mod agent;
mod base64;
mod builder;
mod call;
mod context;
mod control;
mod decode;
mod desk;
mod direct;
mod error;
mod event;
mod extension;
mod failure;
#[rustfmt::skip]
mod generated;
pub mod host;
mod message;
mod options;
mod reactor;
mod readiness;
mod results;
mod run;
mod session;
mod stores;
mod stream;
mod sync;
mod tool;
#[rustfmt::skip]
mod unbuilt;
mod wire;
mod workers;

// The programs of the guide are compiled with the tests.
#[cfg(all(doctest, feature = "tokio", feature = "schemars"))]
#[doc = include_str!("../README.md")]
struct Guide;

pub use agent::{Agent, SessionBuilder};
pub use builder::{AgentBuilder, ProcessLimits};
pub use call::Call;
pub use context::{Cancelled, Chunks, Context};
pub use direct::ReadFileOptions;
pub use error::{CodeError, Result};
pub use event::{AgentEvent, EventEnvelope, EventMetadata, Payload, AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION};
pub use extension::{Handlers, Registration};
pub use failure::ExtensionError;
pub use generated::codes;
pub use generated::types::*;
pub use message::{ContentBlock, Message};
pub use options::{
    ArtifactStoreLimits, ConfirmationPolicy, FileSessionStore, HostEnvConfig, HostSessionStore, HostWorkspaceBackend,
    LocalWorkspaceBackend, MemorySessionStore, PermissionDecision, PermissionPolicy, RetentionLimits, SessionOptions, SessionStore,
    TimeoutAction, WorkspaceBackend,
};
pub use results::{format_verification_summary, AgentResult, RunEventPage};
pub use run::RunHandle;
pub use session::AgentSession;
pub use stream::{Envelopes, EventReceiver, IntoIter, Iter};
pub use tool::{Handler, IntoToolOutput, Json, Tool, ToolContext, ToolOutput};

/// Another name of [`ToolResult`].
pub type ToolCallResult = ToolResult;

/// The names of all types of events, in canonical order: [`AGENT_EVENT_TYPES_V1`].
pub fn agent_event_types_v1() -> &'static [&'static str] {
    AGENT_EVENT_TYPES_V1
}

/// The version of the event envelope: [`EVENT_ENVELOPE_V1_VERSION`].
pub fn event_envelope_v1_version() -> u32 {
    EVENT_ENVELOPE_V1_VERSION
}

/// Adds SA_ONSTACK to signal handlers that were installed after the library was loaded, and puts
/// back those of the library. See the section on the native library above.
///
/// # Errors
/// IO_ERROR.
pub fn repair_signals() -> Result<()> {
    ffi::signals_repair()
}

/// What the native library says of its build: version, abi, commit, go, platform, schema, features.
///
/// # Errors
/// LIBRARY_NOT_FOUND, ABI_MISMATCH.
pub fn build_info() -> Result<serde_json::Value> {
    wire::decode(ffi::build_info()?.as_bytes())
}

/// What is alive in the native library: handles by kind, calls, callbacks, closing, goroutines and
/// heap_bytes. After everything was dropped the first four count nothing.
///
/// # Errors
/// LIBRARY_NOT_FOUND, ABI_MISMATCH, FORKED.
pub fn stats() -> Result<serde_json::Value> {
    wire::decode(&ffi::stats(0)?)
}

//! Parts of the runtime that this program supplies itself: models, permission checkers, context
//! providers, commands, session stores, workspaces, receivers of log lines, and the HTTP of
//! providers. (Tools are [`Tool`](crate::Tool)s.)
//!
//! ```
//! use a3s_code_core::host::{self, Chunks, Model, ModelChunk, ModelRequest, ModelResult};
//!
//! /// A model that says what it hears.
//! struct Echo;
//!
//! impl Model for Echo {
//!     async fn stream(&self, request: ModelRequest, out: Chunks<ModelChunk>) -> host::Result<ModelResult> {
//!         for word in request.messages.last().map(|m| m.text()).unwrap_or_default().split_inclusive(' ') {
//!             out.send(word)?;
//!         }
//!         Ok(ModelResult::default())
//!     }
//! }
//!
//! # fn f(agent: a3s_code_core::Agent) -> a3s_code_core::Result<()> {
//! let echo = agent.register_model("echo", Echo)?; // the model "host/echo"
//! # echo.close(); Ok(()) }
//! ```
//!
//! **Registering** takes a name, or a description with more in it, such as
//! `ModelSpec { context: Some(8000), ..ModelSpec::from("echo") }`. What is registered stays until
//! its [`Registration`](crate::Registration) or its agent or session is closed. An agent's
//! extensions serve all its sessions.
//!
//! **Async, or not.** Methods are async and run in the tokio runtime that they are registered in
//! (with the feature `tokio`), else on a thread of their own. What blocks says
//! `const BLOCKS: bool = true` and gets a thread in either case. Where one method does, an async
//! closure will do, and [`Blocking`] with a plain one; their arguments need their types:
//!
//! ```
//! use a3s_code_core::host::{Blocking, CommandRequest, CommandSpec, PermissionCheck, Verdict};
//! use a3s_code_core::Context;
//!
//! # fn f(session: a3s_code_core::AgentSession) -> a3s_code_core::Result<()> {
//! session.register_permission_checker("judge", |call: PermissionCheck, _: Context| async move {
//!     Ok(if call.effects.exec { Verdict::deny("no programs") } else { Verdict::allow() })
//! })?;
//! session.register_command("date", Blocking(|_: CommandRequest, _: Context| Ok("today")))?;
//! # Ok(()) }
//! ```
//!
//! **Failures.** An [`ExtensionError`], or with `?` any error, is told to the library; so is a
//! panic. What then happens, and what happens without an answer in time, is said at each
//! `register` function.
//!
//! **Cancellation** does not stop a method: [`Context::cancelled`](crate::Context::cancelled)
//! is ready then, and [`Chunks::send`] fails. Nobody waits for a method that goes on; one that never
//! returns keeps its thread or task.

mod functions;
mod register;
mod store;
mod workspace;

pub use crate::context::{Cancelled, Chunks, Context};
pub use crate::failure::ExtensionError;
pub use crate::generated::host::*;
pub use functions::{Blocking, Command, ContextProvider, LogReceiver, Model, PermissionChecker, Transport, Verdict};
pub use register::{StoreRegistration, WorkspaceRegistration};
pub use store::Store;
pub use workspace::Workspace;

/// What methods give.
pub type Result<T> = std::result::Result<T, ExtensionError>;

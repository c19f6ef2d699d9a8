//! Tools that a program implements itself: what they are told and what they give. How the
//! library's requests reach them is the desk's part.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::context::Context;
use crate::error::Result;
use crate::extension::{decoded, encoded, Handlers, Params, Registration, Running};
use crate::failure::ExtensionError;
use crate::session::AgentSession;
use crate::ToolErrorKind;

/// An async function that is a tool: `Fn(P, ToolContext) -> impl Future<Output = Result<R,
/// ExtensionError>>`. Implemented for every such closure and function.
pub trait Handler<P>: Fn(P, ToolContext) -> Self::Future + Send + Sync + 'static {
    /// What it returns.
    type Future: Future<Output = Result<Self::Value, ExtensionError>> + Send + 'static;
    /// What that gives.
    type Value: IntoToolOutput;
}

impl<P, F, Fut, R> Handler<P> for F
where
    F: Fn(P, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ExtensionError>> + Send + 'static,
    R: IntoToolOutput,
{
    type Future = Fut;
    type Value = R;
}

/// A function of this program as a tool of the model. Registered with
/// [`AgentSession::register_tool`](crate::AgentSession::register_tool) or
/// [`Agent::register_tool`](crate::Agent::register_tool).
///
/// ```
/// # #[cfg(feature = "schemars")] {
/// use a3s_code_core::Tool;
///
/// /// Arguments of the tool; the model sees these words.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Weather {
///     /// Name of the city.
///     city: String,
/// }
///
/// let tool = Tool::new::<Weather>("weather", "Says what the weather is.", |args, _ctx| async move {
///     Ok(format!("It is sunny in {}.", args.city))
/// })
/// .read_only();
/// # let _ = tool; }
/// ```
///
/// An async tool runs in the tokio runtime that it was registered in (with the feature `tokio`),
/// else on a thread of its own. What it returns as an error is a failed result that the model
/// sees; so is a panic. A tool that captures its own session keeps it alive until the session is
/// closed: capture it weakly, or close the session.
pub struct Tool {
    spec: Spec,
    handlers: Handlers,
}

#[derive(Serialize)]
struct Spec {
    name: String,
    description: String,
    parameters: Value,
    #[serde(skip_serializing_if = "crate::wire::is_false")]
    read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<i64>,
}

impl Tool {
    /// A tool whose arguments are a `P`; their schema is made from the type. Needs the feature
    /// `schemars`.
    #[cfg(feature = "schemars")]
    pub fn new<P: DeserializeOwned + schemars::JsonSchema + Send + 'static>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl Handler<P>,
    ) -> Self {
        Self::with_schema(name, description, schema::<P>(), handler)
    }

    /// A tool whose arguments are a `P`, described by a JSON schema. With `serde_json::Value` as
    /// `P` it gets them as they are.
    ///
    /// ```
    /// use a3s_code_core::Tool;
    /// use serde_json::{json, Value};
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// let tool = Tool::with_schema::<Value>("weather", "Says what the weather is.", schema, |args, _ctx| async move {
    ///     Ok(format!("It is sunny in {}.", args["city"]))
    /// });
    /// # let _ = tool;
    /// ```
    pub fn with_schema<P: DeserializeOwned + Send + 'static>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        handler: impl Handler<P>,
    ) -> Self {
        let handler = Arc::new(handler);
        Self::make(name.into(), description.into(), schema, false, move |params, context| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let (args, context) = call(params, context)?;
                encoded(handler(args, context).await?.into_output())
            })
        })
    }

    /// As [`with_schema`](Self::with_schema), for a plain function, which runs on a thread of
    /// its own and may block it.
    pub fn blocking<P: DeserializeOwned + Send + 'static, R: IntoToolOutput>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        handler: impl Fn(P, ToolContext) -> Result<R, ExtensionError> + Send + Sync + 'static,
    ) -> Self {
        let handler = Arc::new(handler);
        Self::make(name.into(), description.into(), schema, true, move |params, context| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let (args, context) = call(params, context)?;
                encoded(handler(args, context)?.into_output())
            })
        })
    }

    fn make(
        name: String,
        description: String,
        parameters: Value,
        blocks: bool,
        run: impl Fn(Params, Context) -> Running + Send + Sync + 'static,
    ) -> Self {
        let mut handlers = Handlers::new();
        handlers.add("call", blocks, run);
        Self { spec: Spec { name, description, parameters, read_only: false, timeout_ms: None }, handlers }
    }

    /// Says that the tool changes nothing anywhere: it may run in parallel, and without a policy.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.read_only = true;
        self
    }

    /// Limits one call, in whole milliseconds and at least one. Default: the session's tool time-out,
    /// else 10 minutes.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        // 0 would be no limit of its own. What does not fit is more than the library takes.
        let ms = i64::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        self.spec.timeout_ms = Some(ms.max(1));
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

/// The schema of a type, in itself: what it refers to is put in its place.
#[cfg(feature = "schemars")]
fn schema<P: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<P>().to_value()
}

/// What a call of a tool is made with.
fn call<P: DeserializeOwned>(params: Params, context: Context) -> Result<(P, ToolContext), ExtensionError> {
    #[derive(Deserialize)]
    struct Call {
        args: Option<Box<RawValue>>,
        #[serde(default)]
        call_id: String,
    }
    let Call { args, call_id } = decoded(params)?;
    Ok((decoded(args)?, ToolContext { context, call_id }))
}

impl Agent {
    /// Makes a function of this program a tool of every session of this agent. It stays until
    /// the agent is closed.
    ///
    /// # Errors
    /// INVALID_REQUEST for a bad name or schema, ALREADY_EXISTS for a taken name, SESSION_CLOSED.
    pub fn register_tool(&self, tool: Tool) -> Result<Registration> {
        self.0.control.register(self.0.handle, "", "tool", &tool.spec, tool.handlers)
    }

    /// Withdraws a tool registered here and cancels its open calls; false if there is none.
    pub fn unregister_tool(&self, name: &str) -> bool {
        self.unregister_extension("tool", name)
    }
}

impl AgentSession {
    /// Makes a function of this program a tool of this session. Every call of the model passes the
    /// session's permission policy under the tool's name. It stays until the session is closed.
    ///
    /// # Errors
    /// INVALID_REQUEST for a bad name or schema, ALREADY_EXISTS for a taken name, SESSION_CLOSED.
    pub fn register_tool(&self, tool: Tool) -> Result<Registration> {
        self.0.agent.control.register(self.0.handle, self.session_id(), "tool", &tool.spec, tool.handlers)
    }

    /// Withdraws a tool registered here and cancels its open calls; false if there is none.
    pub fn unregister_tool(&self, name: &str) -> bool {
        self.unregister_extension("tool", name)
    }
}

/// What a tool gives when it succeeds: a text, nothing, a [`Json`] value, or a [`ToolOutput`].
pub trait IntoToolOutput {
    /// The output.
    fn into_output(self) -> ToolOutput;
}

/// The outcome of a tool, for one that says more than a text.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolOutput {
    output: String,
    exit_code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_kind: Option<ToolErrorKind>,
}

impl ToolOutput {
    /// A success with a text for the model.
    pub fn new(output: impl Into<String>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    /// Sets the exit code; anything but 0 is a failed result.
    #[must_use]
    pub fn with_exit_code(mut self, code: i64) -> Self {
        self.exit_code = code;
        self
    }

    /// Sets what it says beside its text.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Says in a machine-readable way why it failed.
    #[must_use]
    pub fn with_error_kind(mut self, kind: ToolErrorKind) -> Self {
        self.error_kind = Some(kind);
        self
    }
}

/// A value that becomes JSON text for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl IntoToolOutput for ToolOutput {
    fn into_output(self) -> ToolOutput {
        self
    }
}

impl IntoToolOutput for String {
    fn into_output(self) -> ToolOutput {
        ToolOutput::new(self)
    }
}

impl IntoToolOutput for &str {
    fn into_output(self) -> ToolOutput {
        ToolOutput::new(self)
    }
}

impl IntoToolOutput for () {
    fn into_output(self) -> ToolOutput {
        ToolOutput::default()
    }
}

impl IntoToolOutput for Value {
    fn into_output(self) -> ToolOutput {
        match self {
            Self::String(text) => ToolOutput::new(text),
            other => ToolOutput::new(other.to_string()),
        }
    }
}

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_output(self) -> ToolOutput {
        match serde_json::to_string(&self.0) {
            Ok(text) => ToolOutput::new(text),
            Err(err) => ToolOutput::new(format!("the tool's result has no JSON form: {err}")).with_exit_code(1),
        }
    }
}

/// What a tool may know of the call it serves, beside what its [`Context`] says.
#[derive(Clone)]
pub struct ToolContext {
    context: Context,
    call_id: String,
}

impl ToolContext {
    /// Name the tool is registered under.
    pub fn tool_name(&self) -> &str {
        self.context.name()
    }

    /// Id of the call, as in the events.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Tells a piece of output while the tool runs: a `tool_output_delta` event. Whether it was
    /// taken: what comes after the call has ended is dropped. Waits while the library is many
    /// pieces behind.
    pub fn emit(&self, text: impl AsRef<str>) -> bool {
        self.context.chunk(&serde_json::json!({ "delta": text.as_ref() })).is_ok()
    }
}

impl Deref for ToolContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("tool_name", &self.tool_name()).field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

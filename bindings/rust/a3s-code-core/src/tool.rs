//! Tools that a program implements itself: what they are told and what they give. How the
//! library's requests reach them is the desk's part.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::ffi::{self, Handle};
use crate::sync::Once;
use crate::ToolErrorKind;

/// What a tool's future gives.
pub(crate) type Outcome = Result<ToolOutput, ToolFailure>;
type Run = dyn Fn(Option<&RawValue>, ToolContext) -> Running + Send + Sync;
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// An async function that is a tool: `Fn(P, ToolContext) -> impl Future<Output = Result<R,
/// ToolFailure>>`. Implemented for every such closure and function.
pub trait Handler<P>: Fn(P, ToolContext) -> Self::Future + Send + Sync + 'static {
    /// What it returns.
    type Future: Future<Output = Result<Self::Value, ToolFailure>> + Send + 'static;
    /// What that gives.
    type Value: IntoToolOutput;
}

impl<P, F, Fut, R> Handler<P> for F
where
    F: Fn(P, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolFailure>> + Send + 'static,
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
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
    pub(crate) read_only: bool,
    pub(crate) timeout_ms: Option<u64>,
    /// Whether it must have a thread of its own, since it blocks.
    pub(crate) blocks: bool,
    pub(crate) run: Box<Run>,
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
        Self::make(name.into(), description.into(), schema, false, move |args, context| {
            let (args, handler) = (arguments(args), Arc::clone(&handler));
            Box::pin(async move { Ok(handler(args?, context).await?.into_output()) })
        })
    }

    /// As [`with_schema`](Self::with_schema), for a plain function, which runs on a thread of
    /// its own and may block it.
    pub fn blocking<P: DeserializeOwned + Send + 'static, R: IntoToolOutput>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        handler: impl Fn(P, ToolContext) -> Result<R, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        let handler = Arc::new(handler);
        Self::make(name.into(), description.into(), schema, true, move |args, context| {
            let (args, handler) = (arguments(args), Arc::clone(&handler));
            Box::pin(async move { Ok(handler(args?, context)?.into_output()) })
        })
    }

    fn make(
        name: String,
        description: String,
        parameters: Value,
        blocks: bool,
        run: impl Fn(Option<&RawValue>, ToolContext) -> Running + Send + Sync + 'static,
    ) -> Self {
        Self { name, description, parameters, read_only: false, timeout_ms: None, blocks, run: Box::new(run) }
    }

    /// Says that the tool changes nothing anywhere: it may run in parallel, and without a policy.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Limits one call. Default: the session's tool time-out, else 10 minutes.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The schema of a type, in itself: what it refers to is put in its place.
#[cfg(feature = "schemars")]
fn schema<P: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<P>().to_value()
}

fn arguments<P: DeserializeOwned>(args: Option<&RawValue>) -> Result<P, ToolFailure> {
    serde_json::from_str(args.map_or("{}", RawValue::get)).map_err(|e| ToolFailure::new("InvalidArguments", e.to_string()))
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

/// Why a tool failed: a type and a message, which the model sees. Every error converts into one
/// with `?`; its type is then the name of the error's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    pub(crate) kind: String,
    pub(crate) message: String,
}

impl ToolFailure {
    /// A failure with a type, such as `"NotFound"`, and words.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }

    /// A failure in words.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::new("Error", message.to_string())
    }
}

// Without being an error itself: else this and the identity would overlap.
impl<E: std::error::Error> From<E> for ToolFailure {
    fn from(err: E) -> Self {
        let name = std::any::type_name::<E>();
        let plain = name.split('<').next().unwrap_or(name);
        Self::new(plain.rsplit("::").next().unwrap_or(plain), err.to_string())
    }
}

/// What a tool may know of the call it serves.
#[derive(Clone)]
pub struct ToolContext(pub(crate) Arc<CallState>);

pub(crate) struct CallState {
    pub(crate) agent: Handle,
    pub(crate) request: u64,
    pub(crate) tool_name: String,
    pub(crate) call_id: String,
    pub(crate) session_id: String,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancelled: Once,
}

impl ToolContext {
    /// Name the tool is registered under.
    pub fn tool_name(&self) -> &str {
        &self.0.tool_name
    }

    /// Id of the call, as in the events.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// Session the call belongs to.
    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// When the answer stops counting; None for never.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// Time until the deadline, zero when it has passed; None if there is none.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether nobody waits for the answer any more: cancelled, or past the deadline.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.words().is_some() || self.0.deadline.is_some_and(|at| Instant::now() >= at)
    }

    /// Why the call was cancelled; None if it was not.
    pub fn reason(&self) -> Option<String> {
        self.0.cancelled.words()
    }

    /// A future that is ready once the call is cancelled. The tool is not stopped: it goes on,
    /// and what it gives is dropped.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled(Arc::clone(&self.0))
    }

    /// Blocks up to `limit`, and less when the call is cancelled; whether it is.
    pub fn wait_cancelled(&self, limit: Duration) -> bool {
        let limit = self.remaining().map_or(limit, |left| left.min(limit));
        self.0.cancelled.wait(limit) || self.is_cancelled()
    }

    /// Tells a piece of output while the tool runs: a `tool_output_delta` event. Whether it was
    /// taken: what comes after the call has ended is dropped. Waits while the library is many
    /// pieces behind.
    pub fn emit(&self, text: impl AsRef<str>) -> bool {
        let piece = serde_json::json!({ "delta": text.as_ref() }).to_string();
        ffi::host_chunk(self.0.agent, self.0.request, piece.as_bytes()).unwrap_or(false)
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("tool_name", &self.0.tool_name).field("call_id", &self.0.call_id).finish_non_exhaustive()
    }
}

/// See [`ToolContext::cancelled`].
pub struct Cancelled(Arc<CallState>);

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.0.cancelled.poll(cx)
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancelled")
    }
}

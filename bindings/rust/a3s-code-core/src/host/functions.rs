//! Extensions of one operation, which a function can be.

use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Chunks, CommandRequest, CommandResult, Context, ContextItem, ContextQuery, ContextResult, ExtensionError, LogLine, ModelChunk,
    ModelRequest, ModelResult, ModelToolCall, PermissionCheck, PermissionExpose, PermissionVisible, Result, TransportChunk,
    TransportRequest,
};
use crate::extension::Handlers;
use crate::PermissionDecision;

/// A plain function where an async one is expected. It runs on a thread of its own.
#[derive(Debug, Clone, Copy)]
pub struct Blocking<F>(
    /// The function.
    pub F,
);

/// Makes async functions, and plain ones that are [`Blocking`], a trait of one method.
macro_rules! functions {
    ($trait:ident::$method:ident($a:ty, $b:ty) -> $out:ty) => {
        impl<F, Fut, R> $trait for F
        where
            F: Fn($a, $b) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<R>> + Send + 'static,
            R: Into<$out>,
        {
            async fn $method(&self, a: $a, b: $b) -> Result<$out> {
                Ok(self(a, b).await?.into())
            }
        }

        impl<F, R> $trait for Blocking<F>
        where
            F: Fn($a, $b) -> Result<R> + Send + Sync + 'static,
            R: Into<$out>,
        {
            const BLOCKS: bool = true;

            async fn $method(&self, a: $a, b: $b) -> Result<$out> {
                Ok(self.0(a, b)?.into())
            }
        }
    };
}

/// A model. Write [`stream`](Self::stream) or [`complete`](Self::complete); a function of the
/// shape of `stream` will do.
pub trait Model: Send + Sync + 'static {
    /// Whether the methods block, and so must have threads of their own.
    const BLOCKS: bool = false;
    /// Whether `stream` is asked; otherwise it is `complete`.
    const STREAMS: bool = true;

    /// Answers a conversation. What is sent through `out` is told at once; the result ends the
    /// answer, and needs no text or calls that were sent. Without it `complete` gives the whole.
    fn stream(&self, request: ModelRequest, out: Chunks<ModelChunk>) -> impl Future<Output = Result<ModelResult>> + Send {
        async move { self.complete(request, Context::clone(&out)).await }
    }

    /// Answers a conversation at once.
    fn complete(&self, request: ModelRequest, context: Context) -> impl Future<Output = Result<ModelResult>> + Send {
        let _ = (request, context);
        async { Err(ExtensionError::unsupported("complete")) }
    }
}

functions!(Model::stream(ModelRequest, Chunks<ModelChunk>) -> ModelResult);

pub(super) fn model<M: Model>(model: M) -> Handlers {
    let (one, other) = shared(model);
    Handlers::new()
        .serve("stream", M::BLOCKS, move |request, context| {
            let model = Arc::clone(&one);
            async move { model.stream(request, Chunks::new(context)).await }
        })
        .serve("complete", M::BLOCKS, move |request, context| {
            let model = Arc::clone(&other);
            async move { model.complete(request, context).await }
        })
}

/// Makes texts something with a field for a text.
macro_rules! texts {
    ($(#[$doc:meta])* $type:ty) => {
        texts!($(#[$doc])* $type, &str);
        texts!($(#[$doc])* $type, String);
    };
    ($(#[$doc:meta])* $type:ty, $text:ty) => {
        $(#[$doc])*
        impl From<$text> for $type {
            fn from(text: $text) -> Self {
                Self { text: Some(text.into()), ..Self::default() }
            }
        }
    };
}
pub(super) use texts;

texts! {
    /// A text of the answer.
    ModelChunk
}
texts! {
    /// The whole text of the answer.
    ModelResult
}

/// A whole call.
impl From<ModelToolCall> for ModelChunk {
    fn from(call: ModelToolCall) -> Self {
        Self { tool_call: Some(call), ..Self::default() }
    }
}

impl ModelChunk {
    /// A piece of the reasoning.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self { reasoning: Some(text.into()), ..Self::default() }
    }

    /// A whole call of a tool, under an id that no other call of the conversation has.
    pub fn tool_call(id: impl Into<String>, name: impl Into<String>, arguments: serde_json::Value) -> Self {
        ModelToolCall { id: Some(id.into()), name: name.into(), arguments: Some(arguments) }.into()
    }
}

/// Nothing but what was sent in chunks.
impl From<()> for ModelResult {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// Judges tool calls. A function of the shape of [`check`](Self::check) will do. Whatever goes
/// wrong in it denies the call.
pub trait PermissionChecker: Send + Sync + 'static {
    /// Whether the methods block, and so must have threads of their own.
    const BLOCKS: bool = false;
    /// Whether [`expose`](Self::expose) is asked; otherwise every tool that the rules do not hide
    /// is shown.
    const EXPOSES: bool = false;

    /// Judges a call before it runs.
    fn check(&self, call: PermissionCheck, context: Context) -> impl Future<Output = Result<Verdict>> + Send;

    /// Whether the model is told of a tool; asked once a run for each tool.
    fn expose(&self, tool: PermissionExpose, context: Context) -> impl Future<Output = Result<bool>> + Send {
        let _ = (tool, context);
        async { Err(ExtensionError::unsupported("expose")) }
    }
}

functions!(PermissionChecker::check(PermissionCheck, Context) -> Verdict);

pub(super) fn checker<C: PermissionChecker>(checker: C) -> Handlers {
    let (one, other) = shared(checker);
    Handlers::new()
        .serve("check", C::BLOCKS, move |call, context| {
            let checker = Arc::clone(&one);
            async move { checker.check(call, context).await }
        })
        .serve("expose", C::BLOCKS, move |tool, context| {
            let checker = Arc::clone(&other);
            async move { Ok(PermissionVisible { visible: checker.expose(tool, context).await? }) }
        })
}

/// What a permission checker decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the call runs.
    pub decision: PermissionDecision,
    /// Told to the model if the call is denied, and to the person who is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Verdict {
    /// The call runs.
    pub fn allow() -> Self {
        PermissionDecision::Allow.into()
    }

    /// The call is refused; the model is told why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: PermissionDecision::Deny, reason: Some(reason.into()) }
    }

    /// A person is asked, who is told why.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { decision: PermissionDecision::Ask, reason: Some(reason.into()) }
    }
}

impl From<PermissionDecision> for Verdict {
    fn from(decision: PermissionDecision) -> Self {
        Self { decision, reason: None }
    }
}

/// Knows the background of prompts. A function of the same shape will do.
pub trait ContextProvider: Send + Sync + 'static {
    /// Whether it blocks, and so must have threads of its own.
    const BLOCKS: bool = false;

    /// Items for a prompt; each needs an id and a content.
    fn query(&self, query: ContextQuery, context: Context) -> impl Future<Output = Result<Vec<ContextItem>>> + Send;
}

functions!(ContextProvider::query(ContextQuery, Context) -> Vec<ContextItem>);

pub(super) fn provider<P: ContextProvider>(provider: P) -> Handlers {
    let provider = Arc::new(provider);
    Handlers::new().serve("query", P::BLOCKS, move |query, context| {
        let provider = Arc::clone(&provider);
        async move { Ok(ContextResult { items: provider.query(query, context).await? }) }
    })
}

/// A slash command. A function of the same shape will do.
pub trait Command: Send + Sync + 'static {
    /// Whether it blocks, and so must have threads of its own.
    const BLOCKS: bool = false;

    /// The text that answers the command.
    fn run(&self, request: CommandRequest, context: Context) -> impl Future<Output = Result<String>> + Send;
}

functions!(Command::run(CommandRequest, Context) -> String);

pub(super) fn command<C: Command>(command: C) -> Handlers {
    let command = Arc::new(command);
    Handlers::new().serve("run", C::BLOCKS, move |request, context| {
        let command = Arc::clone(&command);
        async move { Ok(CommandResult { text: command.run(request, context).await? }) }
    })
}

/// Receives the library's log lines, one at a time. A function of the same shape will do.
pub trait LogReceiver: Send + Sync + 'static {
    /// Whether it blocks, and so must have threads of its own.
    const BLOCKS: bool = false;

    /// Takes a line.
    fn write(&self, line: LogLine, context: Context) -> impl Future<Output = Result<()>> + Send;
}

functions!(LogReceiver::write(LogLine, Context) -> ());

pub(super) fn receiver<L: LogReceiver>(receiver: L) -> Handlers {
    let receiver = Arc::new(receiver);
    Handlers::new().serve("write", L::BLOCKS, move |line, context| {
        let receiver = Arc::clone(&receiver);
        async move { receiver.write(line, context).await.map(|()| Nothing {}) }
    })
}

/// Sends the HTTP requests of a provider. A function of the same shape will do. The requests carry
/// the provider's key in their headers: treat them as a secret.
pub trait Transport: Send + Sync + 'static {
    /// Whether it blocks, and so must have threads of its own.
    const BLOCKS: bool = false;

    /// Sends a request and gives its response: as the result, or in pieces through `out`, the
    /// first with status and headers, and then a result that may be empty. Follow no redirects.
    fn round_trip(&self, request: TransportRequest, out: Chunks<TransportChunk>) -> impl Future<Output = Result<TransportChunk>> + Send;
}

functions!(Transport::round_trip(TransportRequest, Chunks<TransportChunk>) -> TransportChunk);

pub(super) fn transport<T: Transport>(transport: T) -> Handlers {
    let transport = Arc::new(transport);
    Handlers::new().serve("round_trip", T::BLOCKS, move |request, context| {
        let transport = Arc::clone(&transport);
        async move { transport.round_trip(request, Chunks::new(context)).await }
    })
}

texts! {
    /// A piece of the body.
    TransportChunk
}

/// A piece of the body.
impl From<Vec<u8>> for TransportChunk {
    fn from(data: Vec<u8>) -> Self {
        Self { data: Some(data), ..Self::default() }
    }
}

/// The end of a response whose pieces were all sent.
impl From<()> for TransportChunk {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl TransportChunk {
    /// The beginning of a response.
    pub fn head(status: i64, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { status: Some(status), headers: headers.into_iter().collect(), ..Self::default() }
    }
}

/// The result of an operation that gives nothing.
#[derive(Serialize)]
pub(super) struct Nothing {}

pub(super) fn shared<T>(value: T) -> (Arc<T>, Arc<T>) {
    let value = Arc::new(value);
    (Arc::clone(&value), value)
}

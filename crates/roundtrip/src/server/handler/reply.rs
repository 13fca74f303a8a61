//! Return types of handlers.

use std::any::Any;
use std::borrow::Cow;

use roundtrip_core::wire::{
    AudioContent, BlobResourceContents, CallToolResult, ContentBlock, EmbeddedResource, ErrorObject,
    GetPromptResult, ImageContent, PromptMessage, Raw, ReadResourceResult, ResourceContents, ResourceLink,
    Role, TextResourceContents,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::server::offer::list::Cache;
use crate::server::round::AskError;

/// Result of a handler: of a tool, a prompt or a resource.
///
/// This trait is sealed: the protocol says what can be called.
pub trait HandlerResult: Sized + Send + 'static + sealed::Sealed {
    /// Data of the call that the result needs besides the handler's value.
    type Context: Send + 'static;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::CallToolResult {}
    impl Sealed for super::GetPromptResult {}
    impl Sealed for super::ReadResourceResult {}
}

impl HandlerResult for CallToolResult {
    type Context = ();
}

impl HandlerResult for GetPromptResult {
    type Context = ();
}

impl HandlerResult for ReadResourceResult {
    type Context = ReadAt;
}

/// URI that a resource is read at, and the labels of its contents.
#[derive(Debug, Clone)]
pub struct ReadAt {
    pub(crate) uri: String,
    pub(crate) mime_type: Option<Cow<'static, str>>,
    pub(crate) cache: Cache,
}

/// Return type of a handler that takes its rounds by hand: a result, or a reply made by [`Round`](crate::Round).
#[derive(Debug)]
pub struct Reply<R = CallToolResult>(pub(crate) HandlerOutcome<R>);

/// Outcome of a handler.
#[derive(Debug)]
pub(crate) enum HandlerOutcome<R> {
    Complete(R),
    /// The questions are recorded in the round's state: the reply is `input_required`.
    Suspended,
    Failed(AskError),
}

impl<R> Reply<R> {
    /// Creates a reply from a result.
    pub fn complete(result: R) -> Self {
        Self(HandlerOutcome::Complete(result))
    }

    pub(crate) fn suspended() -> Self {
        Self(HandlerOutcome::Suspended)
    }

    pub(crate) fn failed(error: AskError) -> Self {
        Self(HandlerOutcome::Failed(error))
    }
}

impl Reply {
    /// Creates a tool's reply from text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::complete(CallToolResult { content: vec![ContentBlock::text(text)], ..Default::default() })
    }
}

impl<R: HandlerResult> IntoReply<R> for Reply<R> {
    fn into_reply(self, _: R::Context) -> Result<Self, ErrorObject> {
        match self.0 {
            HandlerOutcome::Failed(error) => Err(error.into()),
            other => Ok(Self(other)),
        }
    }
}

/// A value a handler can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler's answer",
    label = "cannot become a `{R}`",
    note = "tools return `String`, `Json<T>`, content blocks, `CallToolResult`, or a `Result` of these with `ToolError`",
    note = "prompts return `String`, `PromptMessage`s, `GetPromptResult`, or a `Result` of these with `ErrorObject`",
    note = "resources return `String`, `Vec<u8>`, `Json<T>`, `ResourceContents`, `ReadResourceResult`, or a `Result` \
            of these with `ErrorObject`"
)]
pub trait IntoReply<R: HandlerResult> {
    /// Turns the value into the protocol's result.
    ///
    /// # Errors
    /// A JSON-RPC error, when the call failed in a way the model cannot correct.
    fn into_reply(self, context: R::Context) -> Result<Reply<R>, ErrorObject>;

    /// Returns the schema of its structured content, if it has any.
    fn output_schema() -> Option<schemars::Schema> {
        None
    }
}

/// Structured output: the value as `structuredContent`, with its schema derived from the type, and as text for
/// clients that read only text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// An error for the model: the tool ran and failed, or refused its arguments.
///
/// Any [`std::error::Error`] becomes one with `?`; the model reads its display text. An [`ErrorObject`]
/// stays the JSON-RPC error it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    failure: Failure,
    remembered: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Failure {
    Tool(Vec<ContentBlock>),
    Protocol(ErrorObject),
}

impl ToolError {
    /// Creates an error that says what went wrong and what to do about it.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_content(vec![ContentBlock::text(message)])
    }

    /// Creates an error with content of any kind.
    pub fn with_content(content: Vec<ContentBlock>) -> Self {
        Self { failure: Failure::Tool(content), remembered: false }
    }

    /// Makes this failure of a step of [`Ask::once`](crate::Ask::once) final: later rounds fail the same way without
    /// running the step again.
    #[must_use]
    pub fn remembered(mut self) -> Self {
        self.remembered = true;
        self
    }

    /// Returns the failure as the journal keeps it, if it is to be remembered.
    pub(crate) fn to_remember(&self) -> Option<String> {
        match &self.failure {
            Failure::Tool(content) if self.remembered => serde_json::to_string(content).ok(),
            _ => None,
        }
    }

    pub(crate) fn recall(json: &str) -> Self {
        Self::with_content(serde_json::from_str(json).unwrap_or_default()).remembered()
    }

    fn protocol(error: ErrorObject) -> Self {
        Self { failure: Failure::Protocol(error), remembered: false }
    }

    fn into_result(self) -> Result<CallToolResult, ErrorObject> {
        match self.failure {
            Failure::Tool(content) => {
                Ok(CallToolResult { content, is_error: Some(true), ..Default::default() })
            }
            Failure::Protocol(error) => Err(error),
        }
    }
}

/// Prompts and resources have no tool errors: there, a failed step is an internal error.
impl From<ToolError> for ErrorObject {
    fn from(error: ToolError) -> Self {
        match error.failure {
            Failure::Protocol(error) => error,
            Failure::Tool(content) => {
                let text: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
                Self::internal(text.join("; "))
            }
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        // Handlers use one `?` for both; a protocol error must not turn into text for the model.
        let any = &error as &dyn Any;
        let asked = any.downcast_ref::<AskError>().and_then(AskError::protocol);
        match asked.or_else(|| any.downcast_ref::<ErrorObject>().cloned()) {
            Some(protocol) => Self::protocol(protocol),
            None => Self::new(error.to_string()),
        }
    }
}

impl<R: HandlerResult, T: IntoReply<R>, E: IntoFailure<R>> IntoReply<R> for Result<T, E> {
    fn into_reply(self, context: R::Context) -> Result<Reply<R>, ErrorObject> {
        match self {
            Ok(value) => value.into_reply(context),
            Err(error) => error.into_failure().map(Reply::complete),
        }
    }

    fn output_schema() -> Option<schemars::Schema> {
        T::output_schema()
    }
}

/// An error a handler can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler's error",
    note = "tools fail with `ToolError` (any `std::error::Error` becomes one with `?`) or `ErrorObject`",
    note = "prompts and resources fail with `ErrorObject`"
)]
pub trait IntoFailure<R> {
    /// Turns the error into a failed result, or into the JSON-RPC error of the call.
    ///
    /// # Errors
    /// The JSON-RPC error.
    fn into_failure(self) -> Result<R, ErrorObject>;
}

impl IntoFailure<CallToolResult> for ToolError {
    fn into_failure(self) -> Result<CallToolResult, ErrorObject> {
        self.into_result()
    }
}

impl IntoFailure<CallToolResult> for AskError {
    fn into_failure(self) -> Result<CallToolResult, ErrorObject> {
        ToolError::from(self).into_result()
    }
}

impl IntoFailure<GetPromptResult> for AskError {
    fn into_failure(self) -> Result<GetPromptResult, ErrorObject> {
        Err(self.into())
    }
}

impl IntoFailure<ReadResourceResult> for AskError {
    fn into_failure(self) -> Result<ReadResourceResult, ErrorObject> {
        Err(self.into())
    }
}

impl<R: HandlerResult> IntoFailure<R> for ErrorObject {
    fn into_failure(self) -> Result<R, ErrorObject> {
        Err(self)
    }
}

// --- tools ------------------------------------------------------------------------------------------------

impl IntoReply<Self> for CallToolResult {
    fn into_reply(self, (): ()) -> Result<Reply<Self>, ErrorObject> {
        Ok(Reply::complete(self))
    }
}

macro_rules! content {
    ($($from:ty,)*) => {
        $(impl IntoReply<CallToolResult> for $from {
            fn into_reply(self, (): ()) -> Result<Reply<CallToolResult>, ErrorObject> {
                Ok(Reply::complete(CallToolResult { content: vec![self.into()], ..Default::default() }))
            }
        })*
    };
}

content! { String, &'static str, ContentBlock, ImageContent, AudioContent, ResourceLink, EmbeddedResource, }

impl IntoReply<CallToolResult> for () {
    fn into_reply(self, (): ()) -> Result<Reply<CallToolResult>, ErrorObject> {
        Ok(Reply::complete(CallToolResult::default()))
    }
}

impl IntoReply<CallToolResult> for Vec<ContentBlock> {
    fn into_reply(self, (): ()) -> Result<Reply<CallToolResult>, ErrorObject> {
        Ok(Reply::complete(CallToolResult { content: self, ..Default::default() }))
    }
}

impl<T: Serialize + JsonSchema> IntoReply<CallToolResult> for Json<T> {
    fn into_reply(self, (): ()) -> Result<Reply<CallToolResult>, ErrorObject> {
        let structured = to_raw(&self.0)?;
        let content = vec![ContentBlock::text(structured.get())];
        Ok(Reply::complete(CallToolResult {
            content,
            structured_content: Some(structured),
            ..Default::default()
        }))
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(
            schemars::generate::SchemaSettings::default()
                .for_serialize()
                .into_generator()
                .into_root_schema_for::<T>(),
        )
    }
}

fn to_raw<T: Serialize>(value: &T) -> Result<Raw, ErrorObject> {
    Raw::of(value).map_err(|error| ErrorObject::internal(format!("the result does not serialise: {error}")))
}

// --- prompts ----------------------------------------------------------------------------------------------

impl IntoReply<Self> for GetPromptResult {
    fn into_reply(self, (): ()) -> Result<Reply<Self>, ErrorObject> {
        Ok(Reply::complete(self))
    }
}

impl IntoReply<GetPromptResult> for Vec<PromptMessage> {
    fn into_reply(self, (): ()) -> Result<Reply<GetPromptResult>, ErrorObject> {
        Ok(Reply::complete(GetPromptResult { messages: self, ..Default::default() }))
    }
}

impl IntoReply<GetPromptResult> for PromptMessage {
    fn into_reply(self, (): ()) -> Result<Reply<GetPromptResult>, ErrorObject> {
        vec![self].into_reply(())
    }
}

impl IntoReply<GetPromptResult> for String {
    fn into_reply(self, (): ()) -> Result<Reply<GetPromptResult>, ErrorObject> {
        PromptMessage { role: Role::User, content: ContentBlock::text(self) }.into_reply(())
    }
}

impl IntoReply<GetPromptResult> for &'static str {
    fn into_reply(self, (): ()) -> Result<Reply<GetPromptResult>, ErrorObject> {
        self.to_owned().into_reply(())
    }
}

// --- resources --------------------------------------------------------------------------------------------

impl IntoReply<Self> for ReadResourceResult {
    fn into_reply(self, _: ReadAt) -> Result<Reply<Self>, ErrorObject> {
        Ok(Reply::complete(self))
    }
}

impl IntoReply<ReadResourceResult> for Vec<ResourceContents> {
    fn into_reply(self, at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        Ok(Reply::complete(ReadResourceResult {
            contents: self,
            ttl_ms: at.cache.ttl_ms(),
            cache_scope: at.cache.scope(),
            ..Default::default()
        }))
    }
}

impl IntoReply<ReadResourceResult> for ResourceContents {
    fn into_reply(self, at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        vec![self].into_reply(at)
    }
}

impl IntoReply<ReadResourceResult> for String {
    fn into_reply(self, at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        let contents = TextResourceContents {
            uri: at.uri.clone(),
            mime_type: at.mime_type.clone().map(Cow::into_owned),
            text: self,
            ..Default::default()
        };
        ResourceContents::Text(contents).into_reply(at)
    }
}

impl IntoReply<ReadResourceResult> for &'static str {
    fn into_reply(self, at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        self.to_owned().into_reply(at)
    }
}

impl IntoReply<ReadResourceResult> for Vec<u8> {
    fn into_reply(self, at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        use base64::Engine as _;
        let contents = BlobResourceContents {
            uri: at.uri.clone(),
            mime_type: at.mime_type.clone().map(Cow::into_owned),
            blob: base64::engine::general_purpose::STANDARD.encode(self),
            ..Default::default()
        };
        ResourceContents::Blob(contents).into_reply(at)
    }
}

impl<T: Serialize> IntoReply<ReadResourceResult> for Json<T> {
    fn into_reply(self, mut at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        at.mime_type.get_or_insert(Cow::Borrowed("application/json"));
        to_raw(&self.0)?.get().to_owned().into_reply(at)
    }
}

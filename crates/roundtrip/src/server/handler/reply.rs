//! Return types of handlers.

use std::borrow::Cow;
use std::fmt;

use roundtrip_core::wire::{
    AudioContent, BlobResourceContents, CallToolResult, CompleteResult, ContentBlock, EmbeddedResource,
    ErrorObject, GetPromptResult, ImageContent, PromptMessage, Raw, ReadResourceResult, ResourceContents,
    ResourceLink, Role, TextResourceContents,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::finite;
use super::tool_error::{IntoFailure, ToolError};
use crate::server::cache::Cache;
use crate::server::round::AskError;

/// Result of a handler: of a tool, a prompt, a resource or a completer.
///
/// This trait is sealed: the protocol says what can be called.
pub trait HandlerResult: Sized + Send + 'static + sealed::Sealed {
    /// Data of the call that the result needs besides the handler's value.
    type Context: Send + 'static;

    /// Turns a handler's failure into a result, if there are failed results, or else into the JSON-RPC error of the call.
    #[doc(hidden)]
    fn failed(error: ToolError) -> Result<Self, ErrorObject> {
        Err(error.into())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::CallToolResult {}
    impl Sealed for super::GetPromptResult {}
    impl Sealed for super::ReadResourceResult {}
    impl Sealed for super::CompleteResult {}
}

impl HandlerResult for CallToolResult {
    type Context = ();

    fn failed(error: ToolError) -> Result<Self, ErrorObject> {
        error.into_result()
    }
}

impl HandlerResult for GetPromptResult {
    type Context = ();
}

impl HandlerResult for ReadResourceResult {
    type Context = ReadAt;
}

impl HandlerResult for CompleteResult {
    type Context = ();
}

/// URI that a resource is read at, and the labels of its contents.
#[derive(Debug, Clone)]
pub struct ReadAt {
    uri: String,
    mime_type: Option<Cow<'static, str>>,
    cache: Cache,
}

impl ReadAt {
    pub(crate) fn new(uri: &str, mime_type: Option<&String>, cache: Cache) -> Self {
        Self { uri: uri.to_owned(), mime_type: mime_type.cloned().map(Cow::Owned), cache }
    }
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

    fn structured(value: Raw, text: String) -> Self {
        let content = vec![ContentBlock::text(text)];
        Self::complete(CallToolResult { content, structured_content: Some(value), ..Default::default() })
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
    note = "tools return `String`, `Json<T>`, content blocks or `CallToolResult`",
    note = "prompts return `String`, `PromptMessage`s or `GetPromptResult`",
    note = "resources return `String`, `Vec<u8>`, `Json<T>`, `ResourceContents` or `ReadResourceResult`",
    note = "completers return `Vec<String>`",
    note = "each may be in a `Result`, with any error type"
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

impl<T> Json<T> {
    /// Sets the text for clients that read only text, in place of the value as JSON.
    pub fn with_text(self, text: impl Into<String>) -> JsonWithText<T> {
        JsonWithText { value: self.0, text: text.into() }
    }
}

/// Structured output with a text of the author's own: [`Json::with_text`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonWithText<T> {
    /// The value, as `structuredContent`.
    pub value: T,
    /// The text beside it.
    pub text: String,
}

impl<R: HandlerResult, T: IntoReply<R>, E: IntoFailure> IntoReply<R> for Result<T, E> {
    fn into_reply(self, context: R::Context) -> Result<Reply<R>, ErrorObject> {
        match self {
            Ok(value) => value.into_reply(context),
            Err(error) => R::failed(error.into_failure()).map(Reply::complete),
        }
    }

    fn output_schema() -> Option<schemars::Schema> {
        T::output_schema()
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
        let text = structured.get().to_owned();
        Ok(Reply::structured(structured, text))
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

impl<T: Serialize + JsonSchema> IntoReply<CallToolResult> for JsonWithText<T> {
    fn into_reply(self, (): ()) -> Result<Reply<CallToolResult>, ErrorObject> {
        Ok(Reply::structured(to_raw(&self.value)?, self.text))
    }

    fn output_schema() -> Option<schemars::Schema> {
        <Json<T> as IntoReply<CallToolResult>>::output_schema()
    }
}

/// Serialises a result. One that does not serialise is the server's failure, and so is one with a number that JSON does not
/// have: the `null` in its place would be another value.
fn to_raw<T: Serialize>(value: &T) -> Result<Raw, ErrorObject> {
    let wrong = |error: &dyn fmt::Display| {
        tracing::error!(%error, "a handler's result does not serialise");
        ErrorObject::internal(format!("the result does not serialise: {error}"))
    };
    let raw = Raw::of(value).map_err(|error| wrong(&error))?;
    finite::check(value, raw.get()).map_err(|error| wrong(&error))?;
    Ok(raw)
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
        let mime_type = at.mime_type.clone().map(Cow::into_owned);
        let contents = BlobResourceContents { mime_type, ..BlobResourceContents::new(&*at.uri, &self) };
        ResourceContents::Blob(contents).into_reply(at)
    }
}

impl<T: Serialize> IntoReply<ReadResourceResult> for Json<T> {
    fn into_reply(self, mut at: ReadAt) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        at.mime_type.get_or_insert(Cow::Borrowed("application/json"));
        to_raw(&self.0)?.get().to_owned().into_reply(at)
    }
}

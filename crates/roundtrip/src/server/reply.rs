//! What a handler can give back.

use std::any::Any;
use std::borrow::Cow;

use roundtrip_core::wire::{
    AudioContent, BlobResourceContents, CallToolResult, ContentBlock, EmbeddedResource, ErrorObject,
    GetPromptResult, ImageContent, PromptMessage, Raw, ReadResourceResult, ResourceContents, ResourceLink,
    Role, TextResourceContents,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::list::Cache;

/// The results a handler can end in: what a tool, a prompt and a resource give back.
///
/// This trait is sealed: the protocol says what can be called.
pub trait Answer: Sized + Send + 'static + sealed::Sealed {
    /// What making one needs to know about the call besides the handler's value.
    type Context: Send + 'static;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::CallToolResult {}
    impl Sealed for super::GetPromptResult {}
    impl Sealed for super::ReadResourceResult {}
}

impl Answer for CallToolResult {
    type Context = ();
}

impl Answer for GetPromptResult {
    type Context = ();
}

impl Answer for ReadResourceResult {
    type Context = ReadAt;
}

/// Where a resource is read, and how its contents are labelled.
#[derive(Debug, Clone)]
pub struct ReadAt {
    pub(crate) uri: String,
    pub(crate) mime_type: Option<Cow<'static, str>>,
    pub(crate) cache: Cache,
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
pub trait IntoReply<R: Answer> {
    /// Turns the value into the protocol's result.
    ///
    /// # Errors
    /// A JSON-RPC error, when the call failed in a way the model cannot mend.
    fn into_reply(self, context: R::Context) -> Result<R, ErrorObject>;

    /// The schema of the structured content it carries, if it does.
    fn output_schema() -> Option<schemars::Schema> {
        None
    }
}

/// Structured output: the value as `structuredContent`, with its schema derived from the type, and as text for
/// clients that read no more than that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// An error for the model: the tool ran and failed, or did not like its arguments.
///
/// Any [`std::error::Error`] becomes one with `?`; what the model reads is its display text. An [`ErrorObject`]
/// stays the JSON-RPC error it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError(Failure);

#[derive(Debug, Clone, PartialEq)]
enum Failure {
    Tool(Vec<ContentBlock>),
    Protocol(ErrorObject),
}

impl ToolError {
    /// An error that says what went wrong and what to do about it.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Failure::Tool(vec![ContentBlock::text(message)]))
    }

    /// An error with content of any kind.
    pub fn with_content(content: Vec<ContentBlock>) -> Self {
        Self(Failure::Tool(content))
    }

    fn into_result(self) -> Result<CallToolResult, ErrorObject> {
        match self.0 {
            Failure::Tool(content) => {
                Ok(CallToolResult { content, is_error: Some(true), ..Default::default() })
            }
            Failure::Protocol(error) => Err(error),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        // Handlers use one `?` for both; a protocol error must not turn into text for the model.
        match (&error as &dyn Any).downcast_ref::<ErrorObject>() {
            Some(protocol) => Self(Failure::Protocol(protocol.clone())),
            None => Self::new(error.to_string()),
        }
    }
}

impl<R: Answer, T: IntoReply<R>, E: IntoFailure<R>> IntoReply<R> for Result<T, E> {
    fn into_reply(self, context: R::Context) -> Result<R, ErrorObject> {
        match self {
            Ok(value) => value.into_reply(context),
            Err(error) => error.into_failure(),
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

impl<R: Answer> IntoFailure<R> for ErrorObject {
    fn into_failure(self) -> Result<R, ErrorObject> {
        Err(self)
    }
}

// --- tools ------------------------------------------------------------------------------------------------

impl IntoReply<Self> for CallToolResult {
    fn into_reply(self, (): ()) -> Result<Self, ErrorObject> {
        Ok(self)
    }
}

macro_rules! content {
    ($($from:ty,)*) => {
        $(impl IntoReply<CallToolResult> for $from {
            fn into_reply(self, (): ()) -> Result<CallToolResult, ErrorObject> {
                Ok(CallToolResult { content: vec![self.into()], ..Default::default() })
            }
        })*
    };
}

content! { String, &'static str, ContentBlock, ImageContent, AudioContent, ResourceLink, EmbeddedResource, }

impl IntoReply<CallToolResult> for () {
    fn into_reply(self, (): ()) -> Result<CallToolResult, ErrorObject> {
        Ok(CallToolResult::default())
    }
}

impl IntoReply<CallToolResult> for Vec<ContentBlock> {
    fn into_reply(self, (): ()) -> Result<CallToolResult, ErrorObject> {
        Ok(CallToolResult { content: self, ..Default::default() })
    }
}

impl<T: Serialize + JsonSchema> IntoReply<CallToolResult> for Json<T> {
    fn into_reply(self, (): ()) -> Result<CallToolResult, ErrorObject> {
        let structured = to_raw(&self.0)?;
        let content = vec![ContentBlock::text(structured.get())];
        Ok(CallToolResult { content, structured_content: Some(structured), ..Default::default() })
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
    fn into_reply(self, (): ()) -> Result<Self, ErrorObject> {
        Ok(self)
    }
}

impl IntoReply<GetPromptResult> for Vec<PromptMessage> {
    fn into_reply(self, (): ()) -> Result<GetPromptResult, ErrorObject> {
        Ok(GetPromptResult { messages: self, ..Default::default() })
    }
}

impl IntoReply<GetPromptResult> for PromptMessage {
    fn into_reply(self, (): ()) -> Result<GetPromptResult, ErrorObject> {
        vec![self].into_reply(())
    }
}

impl IntoReply<GetPromptResult> for String {
    fn into_reply(self, (): ()) -> Result<GetPromptResult, ErrorObject> {
        PromptMessage { role: Role::User, content: ContentBlock::text(self) }.into_reply(())
    }
}

impl IntoReply<GetPromptResult> for &'static str {
    fn into_reply(self, (): ()) -> Result<GetPromptResult, ErrorObject> {
        self.to_owned().into_reply(())
    }
}

// --- resources --------------------------------------------------------------------------------------------

impl IntoReply<Self> for ReadResourceResult {
    fn into_reply(self, _: ReadAt) -> Result<Self, ErrorObject> {
        Ok(self)
    }
}

impl IntoReply<ReadResourceResult> for Vec<ResourceContents> {
    fn into_reply(self, at: ReadAt) -> Result<ReadResourceResult, ErrorObject> {
        Ok(ReadResourceResult {
            contents: self,
            ttl_ms: at.cache.ttl_ms(),
            cache_scope: at.cache.scope(),
            ..Default::default()
        })
    }
}

impl IntoReply<ReadResourceResult> for ResourceContents {
    fn into_reply(self, at: ReadAt) -> Result<ReadResourceResult, ErrorObject> {
        vec![self].into_reply(at)
    }
}

impl IntoReply<ReadResourceResult> for String {
    fn into_reply(self, at: ReadAt) -> Result<ReadResourceResult, ErrorObject> {
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
    fn into_reply(self, at: ReadAt) -> Result<ReadResourceResult, ErrorObject> {
        self.to_owned().into_reply(at)
    }
}

impl IntoReply<ReadResourceResult> for Vec<u8> {
    fn into_reply(self, at: ReadAt) -> Result<ReadResourceResult, ErrorObject> {
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
    fn into_reply(self, mut at: ReadAt) -> Result<ReadResourceResult, ErrorObject> {
        at.mime_type.get_or_insert(Cow::Borrowed("application/json"));
        to_raw(&self.0)?.get().to_owned().into_reply(at)
    }
}

//! Methods: what ties a name, its parameters and its result together, so that a result is always decoded by
//! the method that was called.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::serde::{cow, decode_at};
use super::{
    CallToolRequestParams, CallToolResult, CompleteRequestParams, CompleteResult, DiscoverResult,
    ErrorObject, GetPromptRequestParams, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResult, RequestMeta, RequestParams, SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
};

/// An operation of the protocol.
pub trait Method: Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it is called with.
    type Params<'a>: Deserialize<'a> + Serialize + Debug + Send;
    /// What a complete call gives back.
    type Result: DeserializeOwned + Serialize + Debug + Send + 'static;
}

/// The three methods that may answer `input_required` (mrtr, "Supported Requests"). No other method implements
/// this, so no other can ask (M1).
pub trait MayAsk: Method {}

macro_rules! methods {
    ($($(#[$doc:meta])* $marker:ident = $name:literal: $params:ident => $result:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub enum $marker {}

            impl Method for $marker {
                const NAME: &'static str = $name;
                type Params<'a> = $params<'a>;
                type Result = $result;
            }
        )*

        /// A request of the client, decoded by its method.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum ClientRequest<'a> {
            $($(#[$doc])* $marker($params<'a>),)*
        }

        impl<'a> ClientRequest<'a> {
            /// Decodes parameters by the method's name.
            ///
            /// # Errors
            /// -32601 for a method this revision does not have, -32602 for parameters that do not fit it, with a
            /// message that names the field.
            pub fn decode(method: &str, params: Option<&'a RawValue>) -> Result<Self, ErrorObject> {
                match method {
                    $(<$marker as Method>::NAME => decode_params(params).map(Self::$marker),)*
                    _ => Err(ErrorObject::method_not_found(method)),
                }
            }

            /// The method's name.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$marker(_) => <$marker as Method>::NAME,)*
                }
            }

            /// The request's protocol fields.
            pub fn meta(&self) -> &RequestMeta<'a> {
                match self {
                    $(Self::$marker(params) => &params.meta,)*
                }
            }
        }
    };
}

methods! {
    /// What the server is and can do.
    Discover = "server/discover": RequestParams => DiscoverResult;
    /// The tools there are.
    ListTools = "tools/list": PaginatedRequestParams => ListToolsResult;
    /// Run a tool.
    CallTool = "tools/call": CallToolRequestParams => CallToolResult;
    /// The prompts there are.
    ListPrompts = "prompts/list": PaginatedRequestParams => ListPromptsResult;
    /// Fill in a prompt.
    GetPrompt = "prompts/get": GetPromptRequestParams => GetPromptResult;
    /// The resources there are.
    ListResources = "resources/list": PaginatedRequestParams => ListResourcesResult;
    /// The resource templates there are.
    ListResourceTemplates = "resources/templates/list": PaginatedRequestParams => ListResourceTemplatesResult;
    /// Read a resource.
    ReadResource = "resources/read": ReadResourceRequestParams => ReadResourceResult;
    /// Suggest values for an argument.
    Complete = "completion/complete": CompleteRequestParams => CompleteResult;
    /// Open a stream of change notifications.
    SubscriptionsListen = "subscriptions/listen": SubscriptionsListenRequestParams => SubscriptionsListenResult;
}

impl MayAsk for CallTool {}
impl MayAsk for GetPrompt {}
impl MayAsk for ReadResource {}

impl ClientRequest<'_> {
    /// What the request is aimed at: a tool or prompt by name, a resource by URI. On HTTP this is `Mcp-Name`.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::CallTool(params) => Some(&params.name),
            Self::GetPrompt(params) => Some(&params.name),
            Self::ReadResource(params) => Some(&params.uri),
            _ => None,
        }
    }
}

/// The protocol version of a request whatever its method: what is left to read when the rest does not decode.
pub fn peek_version(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(
            borrow,
            default,
            rename = "io.modelcontextprotocol/protocolVersion",
            deserialize_with = "cow::option"
        )]
        version: Option<std::borrow::Cow<'a, str>>,
    }
    let params: Params<'_> = serde_json::from_str(params?.get()).ok()?;
    params.meta.version.map(std::borrow::Cow::into_owned)
}

/// Decodes parameters; a message about what does not fit names the place (W4).
///
/// # Errors
/// -32602
pub fn decode_params<'a, P: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<P, ErrorObject> {
    decode_at("params", params.map_or("{}", RawValue::get)).map_err(ErrorObject::invalid_params)
}

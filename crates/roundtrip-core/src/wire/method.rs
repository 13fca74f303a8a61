//! Methods: a name with its parameters and its result, so that a result is always decoded by the method that was
//! called.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::serde::{cow, decode_at};
use super::{
    CallToolRequestParams, CallToolResult, CompleteRequestParams, CompleteResult, DiscoverResult,
    ErrorObject, GetPromptRequestParams, GetPromptResult, GetTaskResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult, RequestMeta, RequestParams,
    SubscriptionsListenRequestParams, SubscriptionsListenResult, TaskAcknowledgedResult,
    TaskInputResponseRequestParams, TaskPayloadRequestParams, TaskRequestParams, UpdateTaskRequestParams,
    json,
};

/// An operation of the protocol.
pub trait Method: Send + Sync + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Its parameters.
    type Params<'a>: Deserialize<'a> + Serialize + Debug + Send;
    /// Its complete result.
    type Result: DeserializeOwned + Serialize + Debug + Send + 'static;
}

/// A method that may answer `input_required` (mrtr, "Supported Requests"). Only three methods implement this, so no
/// other can ask (M1).
pub trait MayAsk: Method {
    /// True if the method may answer with a task ([`CreateTaskResult`](super::CreateTaskResult)).
    const MAY_BE_TASK: bool = false;
}

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

            /// Returns the name of the method.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$marker(_) => <$marker as Method>::NAME,)*
                }
            }

            /// Returns the `_meta` of the request.
            pub fn meta(&self) -> &RequestMeta<'a> {
                match self {
                    $(Self::$marker(params) => &params.meta,)*
                }
            }

            /// Serialises the parameters, for a request that has to outlive the message it was read from.
            ///
            /// # Errors
            /// Fails if they do not serialise.
            pub fn to_params(&self) -> serde_json::Result<Box<RawValue>> {
                match self {
                    $(Self::$marker(params) => to_raw_value(params),)*
                }
            }
        }
    };
}

methods! {
    /// Describes the server.
    Discover = "server/discover": RequestParams => DiscoverResult;
    /// Lists tools.
    ListTools = "tools/list": PaginatedRequestParams => ListToolsResult;
    /// Calls a tool.
    CallTool = "tools/call": CallToolRequestParams => CallToolResult;
    /// Lists prompts.
    ListPrompts = "prompts/list": PaginatedRequestParams => ListPromptsResult;
    /// Gets a prompt with its arguments filled in.
    GetPrompt = "prompts/get": GetPromptRequestParams => GetPromptResult;
    /// Lists resources.
    ListResources = "resources/list": PaginatedRequestParams => ListResourcesResult;
    /// Lists resource templates.
    ListResourceTemplates = "resources/templates/list": PaginatedRequestParams => ListResourceTemplatesResult;
    /// Reads a resource.
    ReadResource = "resources/read": ReadResourceRequestParams => ReadResourceResult;
    /// Suggests values for an argument.
    Complete = "completion/complete": CompleteRequestParams => CompleteResult;
    /// Opens a stream of change notifications.
    SubscriptionsListen = "subscriptions/listen": SubscriptionsListenRequestParams => SubscriptionsListenResult;
    /// Returns a task.
    GetTask = "tasks/get": TaskRequestParams => GetTaskResult;
    /// Answers questions of a task.
    UpdateTask = "tasks/update": UpdateTaskRequestParams => TaskAcknowledgedResult;
    /// Cancels a task.
    CancelTask = "tasks/cancel": TaskRequestParams => TaskAcknowledgedResult;
    /// Returns the questions or the result of a task (SEP-2322, 2025-11-25).
    TaskPayload = "tasks/result": TaskPayloadRequestParams => CallToolResult;
    /// Answers questions of a task (SEP-2322).
    TaskInputResponse = "tasks/input_response": TaskInputResponseRequestParams => TaskAcknowledgedResult;
    /// Lists tasks (SEP-2322, 2025-11-25).
    ListTasks = "tasks/list": PaginatedRequestParams => ListTasksResult;
}

impl MayAsk for CallTool {
    const MAY_BE_TASK: bool = true;
}
impl MayAsk for GetPrompt {}
impl MayAsk for ReadResource {}

impl ClientRequest<'_> {
    /// Returns the `requestState` that came with the request, sealed.
    pub fn request_state(&self) -> Option<&str> {
        match self {
            Self::CallTool(params) => params.request_state.as_deref(),
            Self::GetPrompt(params) => params.request_state.as_deref(),
            Self::ReadResource(params) => params.request_state.as_deref(),
            _ => None,
        }
    }

    /// Returns the `inputResponses` that came with the request, undecoded.
    pub fn input_responses(&self) -> Option<&RawValue> {
        let responses = match self {
            Self::CallTool(params) => params.input_responses,
            Self::GetPrompt(params) => params.input_responses,
            Self::ReadResource(params) => params.input_responses,
            _ => None,
        };
        responses.filter(|raw| raw.get() != "null")
    }

    /// Returns the target of the request: a tool or prompt by name, a resource by URI, a task by its id. On HTTP this is
    /// `Mcp-Name`.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::CallTool(params) => Some(&params.name),
            Self::GetPrompt(params) => Some(&params.name),
            Self::ReadResource(params) => Some(&params.uri),
            Self::GetTask(params) | Self::CancelTask(params) => Some(&params.task_id),
            Self::UpdateTask(params) => Some(&params.task_id),
            Self::TaskPayload(params) => Some(&params.task_id),
            Self::TaskInputResponse(params) => Some(&params.task_id),
            _ => None,
        }
    }
}

/// Reads the protocol version of a request of any method, even if the rest does not decode.
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
    let params: Params<'_> = json::from_str(params?.get()).ok()?;
    params.meta.version.map(std::borrow::Cow::into_owned)
}

/// Decodes parameters; an error names the place that does not fit (W4).
///
/// # Errors
/// -32602
pub fn decode_params<'a, P: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<P, ErrorObject> {
    decode_at("params", params.map_or("{}", RawValue::get)).map_err(ErrorObject::invalid_params)
}

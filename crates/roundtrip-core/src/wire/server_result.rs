//! Any result a server sends: what the many handlers of a server have in common.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::Serializer;

use super::{
    CallToolResult, CompleteResult, DiscoverResult, GetPromptResult, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Raw, ReadResourceResult, ResultMeta,
    SubscriptionsListenResult,
};

macro_rules! results {
    ($($(#[$doc:meta])* $variant:ident($result:ident),)*) => {
        /// Any result a server sends. It goes out as the result alone, without a trace of the variant.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum ServerResult {
            $($(#[$doc])* $variant($result),)*
            /// A result serialised before, shared among all who ask.
            Cached(Arc<Raw>),
        }

        impl ServerResult {
            /// The result's `_meta`; none for a cached result, which is as it is.
            pub fn meta_mut(&mut self) -> Option<&mut ResultMeta> {
                match self {
                    $(Self::$variant(result) => Some(&mut result.meta),)*
                    Self::Cached(_) => None,
                }
            }
        }

        impl Serialize for ServerResult {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(result) => result.serialize(serializer),)*
                    Self::Cached(raw) => raw.as_ref().serialize(serializer),
                }
            }
        }

        $(
            impl From<$result> for ServerResult {
                fn from(result: $result) -> Self {
                    Self::$variant(result)
                }
            }
        )*
    };
}

results! {
    /// Of `server/discover`.
    Discover(DiscoverResult),
    /// Of `tools/list`.
    ListTools(ListToolsResult),
    /// Of `tools/call`.
    CallTool(CallToolResult),
    /// Of `prompts/list`.
    ListPrompts(ListPromptsResult),
    /// Of `prompts/get`.
    GetPrompt(GetPromptResult),
    /// Of `resources/list`.
    ListResources(ListResourcesResult),
    /// Of `resources/templates/list`.
    ListResourceTemplates(ListResourceTemplatesResult),
    /// Of `resources/read`.
    ReadResource(ReadResourceResult),
    /// Of `completion/complete`.
    Complete(CompleteResult),
    /// Of `subscriptions/listen`.
    SubscriptionsListen(SubscriptionsListenResult),
    /// Of any method that may ask.
    InputRequired(InputRequiredResult),
}

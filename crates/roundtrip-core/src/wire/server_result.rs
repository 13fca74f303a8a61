//! Results of all methods in one type, for the code that all handlers of a server share.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::Serializer;

use super::{
    BareTaskResult, CallToolResult, CompleteResult, CreateBareTaskResult, CreateTaskResult, DiscoverResult,
    GetPromptResult, GetTaskResult, Implementation, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult, Raw,
    ReadResourceResult, RequestId, ResultMeta, SubscriptionsListenResult, TaskAcknowledgedResult,
    WrittenTask, encode_result,
};

macro_rules! results {
    ($($(#[$doc:meta])* $variant:ident($result:ty),)*) => {
        /// Result of any method. It is serialised without a trace of the variant.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum ServerResult {
            $($(#[$doc])* $variant($result),)*
            /// A result serialised before, shared by all requests.
            Cached(Arc<Raw>),
        }

        impl ServerResult {
            /// Returns the result's `_meta`; `None` for a cached result, which is not changed.
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
    /// Result of `server/discover`. Boxed, like tasks: every result is moved in the room of the largest.
    Discover(Box<DiscoverResult>),
    /// Result of `tools/list`.
    ListTools(ListToolsResult),
    /// Result of `tools/call`.
    CallTool(CallToolResult),
    /// Result of `prompts/list`.
    ListPrompts(ListPromptsResult),
    /// Result of `prompts/get`.
    GetPrompt(GetPromptResult),
    /// Result of `resources/list`.
    ListResources(ListResourcesResult),
    /// Result of `resources/templates/list`.
    ListResourceTemplates(ListResourceTemplatesResult),
    /// Result of `resources/read`.
    ReadResource(ReadResourceResult),
    /// Result of `completion/complete`.
    Complete(CompleteResult),
    /// Result of `subscriptions/listen`.
    SubscriptionsListen(SubscriptionsListenResult),
    /// `input_required`, of any method that may ask.
    InputRequired(Box<InputRequiredResult>),
    /// A task, of a call that goes on as one.
    CreateTask(Box<CreateTaskResult>),
    /// Result of `tasks/get`.
    GetTask(Box<GetTaskResult>),
    /// Result of `tasks/get` for a task that is copied as it was stored, which most are.
    WrittenTask(Box<WrittenTask>),
    /// Result of `tasks/update` and `tasks/cancel`.
    TaskAcknowledged(TaskAcknowledgedResult),
    /// A task, of a call that goes on as one (SEP-2322, 2025-11-25).
    CreateBareTask(Box<CreateBareTaskResult>),
    /// Result of `tasks/get` and `tasks/cancel` (SEP-2322, 2025-11-25).
    BareTask(Box<BareTaskResult>),
    /// Result of `tasks/list`.
    ListTasks(ListTasksResult),
}

/// The server's name and version, serialised for the `_meta` of every result.
#[derive(Debug, Clone)]
pub struct Signature {
    info: Arc<Implementation>,
    /// The whole `_meta` of a result that has no other members in it.
    text: Option<Box<str>>,
}

impl Signature {
    /// Serialises the server's name and version.
    pub fn new(info: Arc<Implementation>) -> Self {
        let meta = ResultMeta { server_info: Some(Arc::clone(&info)), ..ResultMeta::default() };
        let text = serde_json::to_string(&meta).ok().map(String::into_boxed_str);
        Self { info, text }
    }
}

impl ServerResult {
    /// Appends the result as the response to a request to `out`, with the server's name and version in its `_meta`
    /// (W7). The acknowledgements of `tasks/update` and `tasks/cancel` are bare (T2): there are clients that take one with a
    /// `_meta` for the result of a tool.
    ///
    /// Members that are the same on every result, and long text without escapes, are copied instead of serialised.
    ///
    /// # Errors
    /// Fails if the result does not serialise; `out` is then as it was.
    pub fn encode(
        mut self,
        out: &mut Vec<u8>,
        id: &RequestId,
        signature: &Signature,
    ) -> Result<(), serde_json::Error> {
        if matches!(&self, Self::TaskAcknowledged(bare) if bare.meta.is_empty()) {
            return encode_result(out, id, &self);
        }
        let meta = match (self.meta_mut(), &signature.text) {
            (Some(meta), Some(text)) if meta.is_empty() => text,
            (Some(meta), _) => {
                meta.server_info.get_or_insert_with(|| Arc::clone(&signature.info));
                return encode_result(out, id, &self);
            }
            (None, _) => return encode_result(out, id, &self),
        };
        let state = match &mut self {
            Self::InputRequired(asks) => asks.request_state.take(),
            _ => None,
        };
        match &self {
            Self::WrittenTask(task) => task.encode(out, id)?,
            _ => encode_result(out, id, &self)?,
        }
        // Every result has members, and these two come last: they go before the ends of result and message.
        debug_assert!(out.ends_with(b"}}") && !out.ends_with(b"{}}"), "a result is an object with members");
        out.truncate(out.len() - 2);
        if let Some(state) = state {
            out.extend_from_slice(br#","requestState":"#);
            write_text(out, &state)?;
        }
        out.extend_from_slice(br#","_meta":"#);
        out.extend_from_slice(meta.as_bytes());
        out.extend_from_slice(b"}}");
        Ok(())
    }
}

/// Writes text as a JSON string. A `requestState` can be long, and usually has nothing to escape; then it is copied
/// as a whole instead of byte by byte.
fn write_text(out: &mut Vec<u8>, text: &str) -> Result<(), serde_json::Error> {
    let plain = |byte: u8| (b' '..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\');
    if !text.bytes().fold(true, |all, byte| all & plain(byte)) {
        return serde_json::to_writer(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T2: an acknowledgement is its type and nothing else, unless there is something to say beside it.
    #[test]
    fn an_acknowledgement_is_bare() {
        let signature = Signature::new(Arc::new(Implementation::new("server", "1.0.0")));
        let written = |result: TaskAcknowledgedResult| {
            let mut written = Vec::new();
            ServerResult::from(result).encode(&mut written, &7.into(), &signature).unwrap();
            String::from_utf8(written).unwrap()
        };
        let bare = written(TaskAcknowledgedResult::default());
        assert!(bare.ends_with(r#""result":{"resultType":"complete"}}"#), "{bare}");
        let mut named = TaskAcknowledgedResult::default();
        named.meta.extra.insert("a".to_owned(), 1.into());
        assert!(written(named).contains("serverInfo"));
    }

    /// Every call moves its result a dozen times, in the room of the largest.
    #[test]
    fn no_result_is_larger_than_a_list() {
        let (any, list) = (size_of::<ServerResult>(), size_of::<ListToolsResult>());
        assert!(any <= list + 8, "{any} bytes, and {list}");
    }

    /// W7, C2: what is copied is what would have been serialised.
    #[test]
    fn a_result_is_written_as_json_writes_it() {
        let asks = |state: &str| {
            Box::new(InputRequiredResult { request_state: Some(state.into()), ..Default::default() })
        };
        let mut results: Vec<ServerResult> = vec![
            CallToolResult::default().into(),
            ListToolsResult::default().into(),
            ListPromptsResult::default().into(),
            GetPromptResult::default().into(),
            ListResourcesResult::default().into(),
            ListResourceTemplatesResult::default().into(),
            ReadResourceResult::default().into(),
            CompleteResult::default().into(),
            Box::new(InputRequiredResult::default()).into(),
            ServerResult::Cached(Arc::new(Raw::from(serde_json::json!({})))),
        ];
        results.extend(
            ["", "AQID-_", "a b~", "\"", "\\", "\n", "\u{7f}", "é", "\0"].map(|state| asks(state).into()),
        );
        let mut named = asks("state");
        named.meta.extra.insert("a".to_owned(), 1.into());
        results.push(named.into());
        let info = Arc::new(Implementation::new("a \"server\"", "1.0.0"));
        let signature = Signature::new(Arc::clone(&info));
        for mut result in results {
            let (mut written, mut serialised) = (b"before".to_vec(), b"before".to_vec());
            result.clone().encode(&mut written, &7.into(), &signature).unwrap();
            if let Some(meta) = result.meta_mut() {
                meta.server_info = Some(Arc::clone(&info));
            }
            encode_result(&mut serialised, &7.into(), &result).unwrap();
            assert_eq!(String::from_utf8(written), String::from_utf8(serialised));
        }
    }
}

//! Sampling: a server asks the client's language model (client, "Sampling").

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::content::whole;
use super::serde::tagged::{self, Tagged};
use super::serde::{null, number};
use super::{
    AudioContent, ContentBlock, ImageContent, JsonObject, MetaObject, Raw, Role, TextContent, Tool, clip,
};

/// Parameters of `sampling/createMessage`.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageRequestParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Preferences for the choice of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Servers whose context to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub temperature: Option<f64>,
    /// Greatest number of tokens.
    pub max_tokens: u64,
    /// Texts at which the model stops.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// Metadata for the model's provider, in its own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools the model may use.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Rule for the use of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
}

/// Servers whose context to add to the conversation.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// No server.
    None,
    /// The server that asks.
    ThisServer,
    /// Every server.
    AllServers,
}

/// Rule for the use of tools.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChoice {
    /// The mode; `auto` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// Mode of tool use.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// The model may use tools.
    Auto,
    /// The model must use at least one tool.
    Required,
    /// The model must not use tools.
    None,
}

/// Preferences for the choice of a model. Priorities run from 0 (does not matter) to 1 (matters most).
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Models by name, best first.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// Weight of a low price.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub cost_priority: Option<f64>,
    /// Weight of speed.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub speed_priority: Option<f64>,
    /// Weight of ability.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub intelligence_priority: Option<f64>,
}

/// A model, by a part of its name.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelHint {
    /// The part of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Result of `sampling/createMessage`: the model's message.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub content: SamplingContent,
    /// The name of the model.
    pub model: String,
    /// The reason it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or one of the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

/// One message of a conversation with a model.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub content: SamplingContent,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl SamplingMessage {
    /// Creates a message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        let text = SamplingMessageContentBlock::Text(TextContent::new(text));
        Self { role: Role::User, content: SamplingContent::One(text), meta: None }
    }
}

impl CreateMessageRequestParams {
    /// Creates a request for an answer to a text, within so many tokens.
    pub fn text(text: impl Into<String>, max_tokens: u32) -> Self {
        Self { messages: vec![SamplingMessage::user(text)], max_tokens: max_tokens.into(), ..Self::default() }
    }
}

impl CreateMessageRequestParams {
    /// Checks the tool uses of the conversation (sampling, "Tool Use"): each is in a message of the model, and the next message has
    /// the result of each of them and nothing else.
    ///
    /// # Errors
    /// The text names the message that breaks a rule, counted from 1.
    pub fn check_tool_use(&self) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        for (message, number) in self.messages.iter().zip(1..) {
            let wrong = |why: String| Err(format!("message {number} of the conversation: {why}"));
            let blocks = message.content.blocks();
            let result = |block: &SamplingMessageContentBlock| {
                matches!(block, SamplingMessageContentBlock::ToolResult(_))
            };
            let results = blocks.iter().filter(|block| result(block)).count();
            if results > 0 && (message.role != Role::User || results < blocks.len()) {
                return wrong("a user message with tool results must contain only tool results".into());
            }
            for block in blocks {
                if let SamplingMessageContentBlock::ToolResult(result) = block {
                    let Some(at) = open.iter().position(|id| *id == result.tool_use_id) else {
                        return wrong(format!("`{}` is not an open tool use", clip(&result.tool_use_id)));
                    };
                    open.swap_remove(at);
                }
            }
            if let Some(id) = open.first() {
                return wrong(format!("the result of the tool use `{}` is missing", clip(id)));
            }
            for block in blocks {
                if let SamplingMessageContentBlock::ToolUse(call) = block {
                    if message.role != Role::Assistant || open.contains(&call.id.as_str()) {
                        return wrong(format!(
                            "the tool use `{}` is not the model's, or has the id of another",
                            clip(&call.id)
                        ));
                    }
                    open.push(&call.id);
                }
            }
        }
        match open.first() {
            Some(id) => {
                Err(format!("the conversation ends before the result of the tool use `{}`", clip(id)))
            }
            None => Ok(()),
        }
    }
}

impl CreateMessageResult {
    /// Creates a text message of a model.
    pub fn assistant(text: impl Into<String>, model: impl Into<String>) -> Self {
        let text = SamplingMessageContentBlock::Text(TextContent::new(text));
        let content = SamplingContent::One(text);
        Self { role: Role::Assistant, content, model: model.into(), stop_reason: None, meta: None }
    }

    /// Concatenates all its text.
    pub fn text(&self) -> String {
        let text = |block: &SamplingMessageContentBlock| match block {
            SamplingMessageContentBlock::Text(content) => Some(content.text.clone()),
            _ => None,
        };
        self.content.blocks().iter().filter_map(text).collect()
    }
}

/// Content of a message: one block or a list, sent the way it came.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, PartialEq)]
pub enum SamplingContent {
    /// One block.
    One(SamplingMessageContentBlock),
    /// A list.
    Many(Vec<SamplingMessageContentBlock>),
}

impl SamplingContent {
    /// Returns the blocks, however many.
    pub fn blocks(&self) -> &[SamplingMessageContentBlock] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::One(SamplingMessageContentBlock::Text(TextContent::new(text)))
    }
}

impl Serialize for SamplingContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(block) => block.serialize(serializer),
            Self::Many(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = SamplingContent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content block or a list of them")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SamplingContent, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(SamplingContent::One)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<SamplingContent, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(SamplingContent::Many)
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// A content block of a conversation with a model, told apart by `type`.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SamplingMessageContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// A tool call of the model.
    ToolUse(ToolUseContent),
    /// The result of a tool call.
    ToolResult(ToolResultContent),
    /// A block of a type this revision does not have, kept whole (W11).
    #[serde(untagged)]
    Other(JsonObject),
}

impl Tagged for SamplingMessageContentBlock {
    const TAG: &'static str = "type";
    const EXPECTING: &'static str = "a content block of a conversation";

    fn read<'de, D: Deserializer<'de>>(tag: Option<&str>, rest: D) -> Result<Self, D::Error> {
        match tag {
            Some("text") => TextContent::deserialize(rest).map(Self::Text),
            Some("image") => ImageContent::deserialize(rest).map(Self::Image),
            Some("audio") => AudioContent::deserialize(rest).map(Self::Audio),
            Some("tool_use") => ToolUseContent::deserialize(rest).map(Self::ToolUse),
            Some("tool_result") => ToolResultContent::deserialize(rest).map(Self::ToolResult),
            Some(other) => whole(Self::TAG, other, rest).map(Self::Other),
            None => Err(de::Error::missing_field(Self::TAG)),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingMessageContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// A tool call of the model.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUseContent {
    /// The id that ties the result to this call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    pub input: Raw,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

/// The result of a tool call.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// The id of the tool call.
    pub tool_use_id: String,
    /// Its content.
    pub content: Vec<ContentBlock>,
    /// Its structured content: any JSON value, null included.
    #[serde(default, deserialize_with = "null::is_a_value", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw>,
    /// True if the tool failed; `false` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

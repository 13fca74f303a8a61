//! Sampling: a server asks the client's language model (client, "Sampling").

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::content::whole;
use super::serde::tagged::{self, Tagged};
use super::serde::{null, number};
use super::{AudioContent, ContentBlock, ImageContent, JsonObject, MetaObject, Raw, Role, TextContent, Tool};

/// What to ask the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageRequestParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model to prefer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What to tell the model first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which servers' context to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely to sample.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub temperature: Option<f64>,
    /// How many tokens at most.
    pub max_tokens: u64,
    /// Texts at which to stop.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// For the model's provider, in its own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools the model may use.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it must use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
}

/// Which servers' context to add to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// None's.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of every server.
    AllServers,
}

/// Whether the model must use tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChoice {
    /// Must, may or must not; may where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// Must, may or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// It may use them.
    Auto,
    /// It must use at least one.
    Required,
    /// It must use none.
    None,
}

/// Which model to prefer. Priorities run from 0 (does not matter) to 1 (matters most).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Models by name, best first.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// How much its price matters.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub cost_priority: Option<f64>,
    /// How much its speed matters.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub speed_priority: Option<f64>,
    /// How much its abilities matter.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub intelligence_priority: Option<f64>,
}

/// A model, by a part of its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelHint {
    /// The part of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: SamplingContent,
    /// Which model said it.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a reason of its provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: SamplingContent,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl SamplingMessage {
    /// What the user says.
    pub fn user(text: impl Into<String>) -> Self {
        let text = SamplingMessageContentBlock::Text(TextContent::new(text));
        Self { role: Role::User, content: SamplingContent::One(text), meta: None }
    }
}

impl CreateMessageRequestParams {
    /// Has the model answer a text, within so many tokens.
    pub fn text(text: impl Into<String>, max_tokens: u32) -> Self {
        Self { messages: vec![SamplingMessage::user(text)], max_tokens: max_tokens.into(), ..Self::default() }
    }
}

impl CreateMessageResult {
    /// Text that a model said.
    pub fn assistant(text: impl Into<String>, model: impl Into<String>) -> Self {
        let text = SamplingMessageContentBlock::Text(TextContent::new(text));
        let content = SamplingContent::One(text);
        Self { role: Role::Assistant, content, model: model.into(), stop_reason: None, meta: None }
    }

    /// All the text of it, in one piece.
    pub fn text(&self) -> String {
        let text = |block: &SamplingMessageContentBlock| match block {
            SamplingMessageContentBlock::Text(content) => Some(content.text.clone()),
            _ => None,
        };
        self.content.blocks().iter().filter_map(text).collect()
    }
}

/// One block or a list of them; it goes out the way it came in.
#[derive(Debug, Clone, PartialEq)]
pub enum SamplingContent {
    /// One block.
    One(SamplingMessageContentBlock),
    /// A list.
    Many(Vec<SamplingMessageContentBlock>),
}

impl SamplingContent {
    /// The blocks, however many.
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

/// One piece of a conversation with a model, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SamplingMessageContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Sound.
    Audio(AudioContent),
    /// The model wants to use a tool.
    ToolUse(ToolUseContent),
    /// What came of it.
    ToolResult(ToolResultContent),
    /// A kind this revision does not have, kept whole (W11).
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

/// The model wants to use a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUseContent {
    /// Ties the result to this wish.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments.
    pub input: Raw,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

/// What came of a tool the model used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// The id of the model's wish.
    pub tool_use_id: String,
    /// What the tool says.
    pub content: Vec<ContentBlock>,
    /// What it says, for programs: any JSON value, null included.
    #[serde(default, deserialize_with = "null::is_a_value", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw>,
    /// Whether it failed; assumed not to be so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

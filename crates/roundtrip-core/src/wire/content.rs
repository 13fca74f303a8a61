//! Content blocks of tools, prompts and models.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::serde::tagged::{self, Tagged};
use super::serde::{null, number};
use super::{JsonObject, MetaObject, Resource, ResourceContents};

/// Speaker or audience of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Hints about content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended audience.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// Its importance, from 0 (not at all) to 1 (indispensable).
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub priority: Option<f64>,
    /// The time of its last change, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A content block, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// A resource by its address.
    ResourceLink(Box<ResourceLink>),
    /// A resource with its contents.
    Resource(EmbeddedResource),
    /// A block of a type this revision does not have, kept whole, so that it does not cost the other blocks (W11).
    #[serde(untagged)]
    Other(JsonObject),
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image block from the bytes of the image. [`ImageContent::from_base64`] takes them encoded.
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(bytes, mime_type))
    }

    /// Creates an audio block from the bytes of the audio. [`AudioContent::from_base64`] takes them encoded.
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(bytes, mime_type))
    }

    /// Creates a link to a resource.
    pub fn resource_link(link: ResourceLink) -> Self {
        Self::ResourceLink(Box::new(link))
    }

    /// Creates a block with a resource's contents.
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource { resource: contents.into(), annotations: None, meta: None })
    }

    /// Returns the text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<ImageContent> for ContentBlock {
    fn from(image: ImageContent) -> Self {
        Self::Image(image)
    }
}

impl From<AudioContent> for ContentBlock {
    fn from(audio: AudioContent) -> Self {
        Self::Audio(audio)
    }
}

impl From<ResourceLink> for ContentBlock {
    fn from(link: ResourceLink) -> Self {
        Self::ResourceLink(Box::new(link))
    }
}

impl From<EmbeddedResource> for ContentBlock {
    fn from(resource: EmbeddedResource) -> Self {
        Self::Resource(resource)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl Tagged for ContentBlock {
    const TAG: &'static str = "type";
    const EXPECTING: &'static str = "a content block";

    fn read<'de, D: Deserializer<'de>>(tag: Option<&str>, rest: D) -> Result<Self, D::Error> {
        match tag {
            Some("text") => TextContent::deserialize(rest).map(Self::Text),
            Some("image") => ImageContent::deserialize(rest).map(Self::Image),
            Some("audio") => AudioContent::deserialize(rest).map(Self::Audio),
            Some("resource_link") => Box::deserialize(rest).map(Self::ResourceLink),
            Some("resource") => EmbeddedResource::deserialize(rest).map(Self::Resource),
            Some(other) => whole(Self::TAG, other, rest).map(Self::Other),
            None => Err(de::Error::missing_field(Self::TAG)),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// Returns an object of an unknown type, with its tag put back.
pub(crate) fn whole<'de, D: Deserializer<'de>>(
    tag: &str,
    kind: &str,
    rest: D,
) -> Result<JsonObject, D::Error> {
    let mut object = JsonObject::deserialize(rest)?;
    object.insert(tag.to_owned(), kind.into());
    Ok(object)
}

/// Text content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl TextContent {
    /// Creates text without annotations.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns whether there is nothing beside the text.
    pub const fn is_plain(&self) -> bool {
        self.annotations.is_none() && self.meta.is_none()
    }
}

/// An image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Its bytes, in base64.
    pub data: String,
    /// Its media type.
    pub mime_type: String,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ImageContent {
    /// Creates an image without annotations from its bytes.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self { data: STANDARD.encode(bytes), mime_type: mime_type.into(), ..Self::default() }
    }

    /// Creates an image without annotations from its bytes in base64.
    ///
    /// # Errors
    /// Fails if the text is not base64.
    pub fn from_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Result<Self, NotBase64> {
        Ok(Self { data: base64(data.into())?, mime_type: mime_type.into(), ..Self::default() })
    }
}

/// Audio.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioContent {
    /// Its bytes, in base64.
    pub data: String,
    /// Its media type.
    pub mime_type: String,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl AudioContent {
    /// Creates audio without annotations from its bytes.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self { data: STANDARD.encode(bytes), mime_type: mime_type.into(), ..Self::default() }
    }

    /// Creates audio without annotations from its bytes in base64.
    ///
    /// # Errors
    /// Fails if the text is not base64.
    pub fn from_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Result<Self, NotBase64> {
        Ok(Self { data: base64(data.into())?, mime_type: mime_type.into(), ..Self::default() })
    }
}

/// The error of a text that should be base64 and is not: the standard alphabet, with padding.
///
/// ```
/// use roundtrip_core::wire::{ContentBlock, ImageContent};
///
/// assert_eq!(ContentBlock::image(b"hi", "image/png"), ImageContent::from_base64("aGk=", "image/png").unwrap().into());
/// assert!(ImageContent::from_base64("a picture", "image/png").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not base64: {0}; the bytes themselves are taken too, and encoded")]
pub struct NotBase64(String);

/// Checks that a text is base64.
pub(super) fn base64(data: String) -> Result<String, NotBase64> {
    match STANDARD.decode(&data) {
        Ok(_) => Ok(data),
        Err(error) => Err(NotBase64(error.to_string())),
    }
}

/// A link to a resource, with the same fields as a [`Resource`] in a list.
pub type ResourceLink = Resource;

/// A resource with its contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

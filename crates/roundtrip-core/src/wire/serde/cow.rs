//! Strings borrowed from the input. Serde's derive borrows a plain `Cow`, but makes an owned one of the `Cow` inside
//! an `Option` or a map.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A string borrowed from the input where it has no escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Str<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Str<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E: de::Error>(self, text: String) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(StrVisitor)
    }
}

/// Reads an `Option<Cow<str>>`, borrowed unless the text has escapes. Null counts as absent.
pub(crate) fn option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    Ok(Option::<Str<'de>>::deserialize(deserializer)?.map(|text| text.0))
}

/// Reads a map of strings, all borrowed unless they have escapes. Null counts as an empty map.
pub(crate) fn map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<Cow<'de, str>, Cow<'de, str>>, D::Error> {
    let map = Option::<BTreeMap<Str<'de>, Str<'de>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(map.into_iter().map(|(name, value)| (name.0, value.0)).collect())
}

//! Unions told apart by one member. Serde's derived ones buffer every member in a form that kept JSON text
//! ([`Raw`](super::Raw)) cannot be read from, and lose the path of an error; these read straight on when the tag
//! comes first, as nearly everyone writes it, and otherwise keep the other members as text.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::by_name::ByName;
use super::cow::Str;

/// A union whose variant is named by one member.
pub(crate) trait Tagged: Sized {
    /// The name of that member.
    const TAG: &'static str;
    /// Description of the expected value, for errors.
    const EXPECTING: &'static str;

    /// Reads the other members, given the tag. A null tag counts as absent.
    fn read<'de, D: Deserializer<'de>>(tag: Option<&str>, rest: D) -> Result<Self, D::Error>;
}

pub(crate) fn deserialize<'de, T: Tagged, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTING)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut tag = None;
        let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(Str(name)) = map.next_key()? {
            if name != T::TAG {
                members.push((name.into_owned(), map.next_value()?));
                continue;
            }
            let value: Option<Str<'de>> = map.next_value()?;
            if members.is_empty() {
                return T::read(value.as_ref().map(|text| &*text.0), MapAccessDeserializer::new(map));
            }
            tag = value.map(|text| text.0.into_owned());
        }
        let members = members.iter().map(|(name, value)| (name.as_str(), &**value));
        let rest = MapDeserializer::<_, serde_json::Error>::new(members);
        T::read(tag.as_deref(), ByName::new(rest)).map_err(de::Error::custom)
    }
}

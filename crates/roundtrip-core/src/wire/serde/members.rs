//! JSON objects as lists of members, in the order they came.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::Str;

/// Reads an object. `expecting` describes it, for errors.
pub(crate) fn read<'de, K, V, D>(deserializer: D, expecting: &'static str) -> Result<Vec<(K, V)>, D::Error>
where
    K: From<Cow<'de, str>>,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(Members { expecting, distinct: None, members: PhantomData })
}

/// Reads an object and refuses two members of one name. `what` names its members, for errors.
pub(crate) fn read_distinct<'de, V, D>(
    deserializer: D,
    expecting: &'static str,
    what: &'static str,
) -> Result<Vec<(String, V)>, D::Error>
where
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(Members { expecting, distinct: Some(what), members: PhantomData })
}

struct Members<K, V> {
    expecting: &'static str,
    distinct: Option<&'static str>,
    members: PhantomData<(K, V)>,
}

impl<'de, K: From<Cow<'de, str>>, V: Deserialize<'de>> Visitor<'de> for Members<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        // A set: there may be as many names as fit into a hostile message.
        let mut names = self.distinct.map(|what| (what, HashSet::new()));
        while let Some((Str(name), value)) = map.next_entry()? {
            if let Some((what, names)) = &mut names
                && !names.insert(name.clone())
            {
                return Err(de::Error::custom(format!("two {what} are named `{name}`")));
            }
            members.push((K::from(name), value));
        }
        Ok(members)
    }
}

//! Readings of an explicit null that differ from serde's own.

use serde::Deserialize;
use serde::de::Deserializer;

/// Reads null as absent, for lists and maps.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads null as a value: only a missing member is `None`.
pub(crate) fn is_a_value<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

//! Decoding of JSON that a peer or a store wrote. Structs are read [by name](ByName), never from lists.

use serde::Deserialize;
use serde_json::de::Read;
use serde_json::{Error, Value};

use super::by_name::{ByName, NoLists, Note};
use crate::wire::{clip, clip_error};

/// Decodes a text.
///
/// # Errors
/// Fails if the text is not JSON, or does not fit the type.
pub fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    whole(serde_json::Deserializer::from_str(text), ())
}

/// Decodes a text, unless serde would buffer a list of it.
///
/// # Errors
/// Fails if the text is not JSON, does not fit the type, or has such a list.
pub fn from_str_unbuffered<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    whole(serde_json::Deserializer::from_str(text), NoLists)
}

/// Decodes bytes.
///
/// # Errors
/// Fails if they are not JSON, or do not fit the type.
pub fn from_slice<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    whole(serde_json::Deserializer::from_slice(bytes), ())
}

/// Decodes a generic value.
///
/// # Errors
/// Fails if it does not fit the type.
pub fn from_value<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, Error> {
    T::deserialize(ByName::new(value))
}

fn whole<'a, R: Read<'a>, T: Deserialize<'a>, N: Note>(
    mut json: serde_json::Deserializer<R>,
    note: N,
) -> Result<T, Error> {
    let value = T::deserialize(ByName::with(&mut json, note))?;
    json.end()?;
    Ok(value)
}

/// Decodes a text; if that fails, decodes it again with the path tracked for the error. `what` is the path's first
/// step.
pub(crate) fn decode_at<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> Result<T, String> {
    from_str(text).map_err(|first| misfit::<T>(what, text, &first))
}

#[cold]
fn misfit<'a, T: Deserialize<'a>>(what: &str, text: &'a str, first: &Error) -> String {
    let mut json = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(ByName::new(&mut json)) else {
        return format!("invalid {what}: {}", clip_error(first));
    };
    let path = error.path().to_string();
    let place = if path == "." { what.to_owned() } else { format!("{what}.{}", clip(&path)) };
    format!("invalid {place}: {}", clip_error(error.inner()))
}

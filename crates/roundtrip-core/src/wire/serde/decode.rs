//! Decoding with errors that name the place.

use serde::Deserialize;

use crate::wire::{clip, clip_error};

/// Decodes a text; if that fails, decodes it again with the path tracked for the error. `what` is the path's first
/// step.
pub(crate) fn decode_at<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|first| misfit::<T>(what, text, &first))
}

#[cold]
fn misfit<'a, T: Deserialize<'a>>(what: &str, text: &'a str, first: &serde_json::Error) -> String {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut deserializer) else {
        return format!("invalid {what}: {}", clip_error(first));
    };
    let path = error.path().to_string();
    let place = if path == "." { what.to_owned() } else { format!("{what}.{}", clip(&path)) };
    format!("invalid {place}: {}", clip_error(error.inner()))
}

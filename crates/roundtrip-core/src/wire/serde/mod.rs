//! Helpers for decoding and encoding JSON with serde, none of them a noun of the specification.

mod by_name;
pub(crate) mod cow;
mod decode;
pub(crate) mod literal;
pub(crate) mod members;
pub(crate) mod null;
pub(crate) mod number;
mod raw;
pub(crate) mod tagged;

pub use by_name::{ByName, Lists, NoLists, Note};
pub(crate) use cow::Str;
pub(crate) use decode::decode_at;
pub use decode::{from_slice, from_str, from_str_unbuffered, from_value};
pub use raw::Raw;

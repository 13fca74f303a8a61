//! The specification's nouns in the specification's spelling, one file per category of its schema.
//!
//! Requests borrow from the bytes they came in; results own what they carry. Nothing here is decoded by shape:
//! the method that was called says what its parameters and its result are ([`Method`]).

mod cow;
mod error_object;
pub mod meta;
mod method;
mod raw;
mod rpc;
mod version;

pub use error_object::*;
pub use meta::{MetaObject, NotificationMeta, RequestMeta, ResultMeta};
pub use method::*;
pub use raw::Raw;
pub use rpc::*;
pub use version::*;

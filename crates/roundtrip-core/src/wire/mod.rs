//! The specification's nouns in the specification's spelling, one file per category of its schema.
//!
//! Requests borrow from the bytes they came in; results own what they carry. Nothing here is decoded by shape:
//! the method that was called says what its parameters and its result are ([`Method`]).

mod cancel;
mod capability;
mod clip;
mod completion;
mod content;
mod cow;
mod discover;
mod elicit_choice;
mod elicit_schema;
mod elicitation;
mod error_object;
mod fit;
mod header;
mod header_param;
mod input;
mod literal;
mod logging;
pub mod meta;
mod method;
mod notification;
mod null;
mod number;
mod one_line;
mod pagination;
mod progress;
mod prompts;
mod raw;
mod requested_schema;
mod resources;
mod result_type;
mod roots;
mod rpc;
mod sampling;
mod server_result;
mod subscriptions;
mod tagged;
mod tools;
mod version;

pub(crate) use cow::Str as BorrowedStr;

pub use cancel::*;
pub use capability::*;
pub use clip::{clip, clip_error, clip_to};
pub use completion::*;
pub use content::*;
pub use discover::*;
pub use elicit_choice::*;
pub use elicit_schema::*;
pub use elicitation::*;
pub use error_object::*;
pub use header::*;
pub use header_param::*;
pub use input::*;
pub use logging::*;
pub use meta::{MetaObject, NotificationMeta, RequestMeta, ResultMeta};
pub use method::*;
pub use notification::*;
pub use one_line::one_line;
pub use pagination::*;
pub use progress::*;
pub use prompts::*;
pub use raw::Raw;
pub use requested_schema::RequestedSchema;
pub use resources::*;
pub use result_type::*;
pub use roots::*;
pub use rpc::*;
pub use sampling::*;
pub use server_result::*;
pub use subscriptions::*;
pub use tools::*;
pub use version::*;

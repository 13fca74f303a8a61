//! The specification's types in the specification's spelling, one file per category of its schema.
//!
//! Requests borrow from the bytes they came in; results own what they carry. Nothing here is decoded by shape:
//! the method that was called says what its parameters and its result are ([`Method`]).

mod bare_tasks;
mod cancel;
mod capability;
mod clip;
mod completion;
mod content;
mod discover;
mod elicit_choice;
mod elicit_field;
mod elicit_schema;
mod elicitation;
mod error_object;
mod header;
mod header_param;
mod input;
mod logging;
pub mod meta;
mod method;
mod notification;
mod one_line;
mod pagination;
mod part;
mod progress;
mod prompts;
mod request_id;
mod requested_schema;
mod resources;
mod result_type;
mod roots;
mod rpc;
mod sampling;
mod serde;
mod server_result;
mod subscriptions;
mod tasks;
mod tool_result;
mod tools;
mod version;
mod written_task;

pub(crate) use self::serde::{Str as BorrowedStr, members, number};

pub use self::serde::Raw;

/// Decoding of JSON that a peer or a store wrote: structs are read by the names of their fields, never from lists.
pub mod json {
    pub use super::serde::{
        ByName, Lists, NoLists, Note, from_slice, from_str, from_str_unbuffered, from_value,
    };
}

pub use bare_tasks::*;
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
pub use meta::{MetaObject, NotificationMeta, RequestMeta, ResultMeta, check_extension_name, check_meta_key};
pub use method::*;
pub use notification::*;
pub use one_line::one_line;
pub use pagination::*;
pub use part::*;
pub use progress::*;
pub use prompts::*;
pub use request_id::*;
pub use requested_schema::RequestedSchema;
pub use resources::*;
pub use result_type::*;
pub use roots::*;
pub use rpc::*;
pub use sampling::*;
pub use server_result::*;
pub use subscriptions::*;
pub use tasks::*;
pub use tool_result::ToolFailure;
pub use tools::*;
pub use version::*;
pub use written_task::*;

//! What a flow's state is bound to.

mod arguments;
mod digest;
mod form;

pub use arguments::{ArgumentsError, digest_arguments, digest_text_arguments};
pub use digest::Digest;

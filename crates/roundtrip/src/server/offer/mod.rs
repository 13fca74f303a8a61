//! Offers of a server: tools, prompts, resources, templates, and the lists of them.

pub(crate) mod catalog;
mod completer;
pub(crate) mod entry;
pub(crate) mod list;
mod prompt;
mod resource;
mod schema;
mod setup;
mod tool;
mod uri_template;

pub use catalog::{Catalog, Offer};
pub use completer::Partial;
pub use prompt::Prompt;
pub use resource::{Resource, ResourceTemplate};
pub use setup::{ServeError, SetupError};
pub use tool::Tool;

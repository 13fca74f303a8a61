//! Offers of a server: tools, prompts, resources, templates, and the lists of them.

pub(crate) mod catalog;
pub(crate) mod completer;
pub(crate) mod list;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod setup;
pub(crate) mod tool;
mod uri_template;

pub use catalog::{Catalog, Offer};
pub use completer::Partial;
pub use list::Cache;
pub use prompt::Prompt;
pub use resource::{Resource, ResourceTemplate};
pub use setup::{Needs, ServeError, SetupError};
pub use tool::Tool;

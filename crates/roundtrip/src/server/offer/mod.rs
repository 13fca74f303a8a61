//! Offers of a server: tools, prompts, resources, templates, and the lists of them.

pub(crate) mod catalog;
pub(crate) mod completer;
pub(crate) mod entry;
mod group;
pub(crate) mod list;
mod prompt;
mod resource;
mod schema;
mod scoped;
mod setup;
mod tool;
mod uri;
mod uri_template;

pub use catalog::{Catalog, Offer};
pub use completer::Partial;
pub use group::Group;
pub use prompt::Prompt;
pub use resource::{Resource, ResourceTemplate};
pub use setup::{ServeError, SetupError};
pub use tool::Tool;

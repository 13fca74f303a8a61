//! Changes on a server, as subscriptions tell of them and the cache heeds them.

use roundtrip_core::wire::Task;

/// Change on the server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The content of a resource.
    Resource {
        /// URI of the resource; it may lie below the URI that was listened for.
        uri: String,
    },
    /// A task, as it is now.
    Task(Box<Task>),
}

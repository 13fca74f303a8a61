//! State that calls leave behind for later calls.

use std::sync::OnceLock;

use roundtrip_core::exchange::TaskDialect;
use roundtrip_core::wire::ProtocolVersion;

use super::cache::Cache;
use super::tools::Tools;

/// State that calls leave behind for later calls. Results and tools are of some credentials, and are forgotten with them.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) cache: Cache,
    pub(super) tools: Tools,
    /// Revision of the requests that the server answers.
    pub(super) answered_in: OnceLock<ProtocolVersion>,
    /// Dialect of tasks that the server has named.
    pub(super) dialect: OnceLock<TaskDialect>,
}

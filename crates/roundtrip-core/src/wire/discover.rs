//! `server/discover`: what a server is and can do.

use serde::{Deserialize, Serialize};

use super::serde::null;
use super::{CacheScope, ResultComplete, ResultMeta, ServerCapabilities, pagination};

/// What a server is and can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// Says that this is the answer.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The revisions it speaks, those unknown to us included.
    pub supported_versions: Vec<String>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// How to make good use of it, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long it stays fresh, in milliseconds; 0 is stale at once.
    #[serde(default, deserialize_with = "pagination::ttl")]
    pub ttl_ms: u64,
    /// Who may be given a kept copy.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// The protocol's fields.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

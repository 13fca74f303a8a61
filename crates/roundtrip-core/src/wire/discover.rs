//! `server/discover`: identity and capabilities of a server.

use serde::{Deserialize, Serialize};

use super::serde::null;
use super::{CacheScope, ResultComplete, ResultMeta, ServerCapabilities, pagination};

/// Result of `server/discover`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The protocol versions it supports, those unknown to this crate included.
    pub supported_versions: Vec<String>,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for models on using it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Time it stays fresh, in milliseconds; 0 is stale at once.
    #[serde(default, deserialize_with = "pagination::ttl")]
    pub ttl_ms: u64,
    /// Caches that may keep it.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

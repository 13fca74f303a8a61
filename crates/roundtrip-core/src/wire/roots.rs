//! Roots: the folders a client lets a server work in.

use serde::{Deserialize, Serialize};

use super::MetaObject;

/// Parameters of `roots/list`, which has none of its own.
///
/// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListRootsRequestParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

/// Result of `roots/list`.
///
/// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
}

/// A folder or file.
///
/// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Root {
    /// Its `file:` URI.
    pub uri: String,
    /// The name people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

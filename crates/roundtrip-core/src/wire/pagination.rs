//! Types that many requests and results share: plain parameters, pages, caching.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::serde::cow::{self, Str};
use super::{NotificationMeta, RequestMeta};

/// Parameters of a request that has none of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
}

/// Parameters of a request for one page of a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaginatedRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// The cursor from the page before; absent for the first page.
    #[serde(borrow, default, deserialize_with = "cow::option", skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cow<'a, str>>,
}

/// Parameters of a notification that has none of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
}

/// Caches that may keep a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Any cache: the result is the same for every caller.
    Public,
    /// A cache of the caller's own only.
    #[default]
    Private,
}

impl<'de> Deserialize<'de> for CacheScope {
    /// Reads any scope but `public` as private: the safe reading of a scope this revision does not have.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scope: Option<Str<'_>> = Option::deserialize(deserializer)?;
        Ok(if scope.is_some_and(|text| text.0 == "public") { Self::Public } else { Self::Private })
    }
}

/// Reads `ttlMs`. Null and negative numbers are 0, which is stale at once; a fraction is cut off.
pub(crate) fn ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct TtlVisitor;
    impl Visitor<'_> for TtlVisitor {
        type Value = u64;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of milliseconds")
        }
        fn visit_u64<E: de::Error>(self, ttl: u64) -> Result<u64, E> {
            Ok(ttl)
        }
        fn visit_i64<E: de::Error>(self, ttl: i64) -> Result<u64, E> {
            Ok(u64::try_from(ttl).unwrap_or(0))
        }
        fn visit_f64<E: de::Error>(self, ttl: f64) -> Result<u64, E> {
            // A cast from a float saturates: below zero is 0.
            Ok(ttl as u64)
        }
        fn visit_unit<E: de::Error>(self) -> Result<u64, E> {
            Ok(0)
        }
    }
    deserializer.deserialize_any(TtlVisitor)
}

//! [`Scope`]: the hooks, visibility rules and rate limits of an offer or a group.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roundtrip_core::wire::ErrorObject;

use super::around::Hook;
use super::viewer::Viewer;
use crate::server::cache::Cache;
use crate::server::outcome::panicked;
use crate::server::rate::RateLimit;

type Rule = Arc<dyn Fn(&Viewer<'_>) -> bool + Send + Sync>;

/// Hooks, visibility rules and rate limits of an offer: those of its groups first, the outermost group's first of all, then its own.
#[derive(Clone, Default)]
pub(crate) struct Scope {
    pub(crate) hooks: Vec<Hook>,
    rules: Vec<Rule>,
    pub(crate) limits: Vec<RateLimit>,
}

impl Scope {
    pub(crate) fn add_rule(&mut self, rule: impl Fn(&Viewer<'_>) -> bool + Send + Sync + 'static) {
        self.rules.push(Arc::new(rule));
    }

    /// Puts the scope of a group around this one.
    pub(crate) fn surround(&mut self, group: &Self) {
        self.hooks.splice(..0, group.hooks.iter().cloned());
        self.rules.splice(..0, group.rules.iter().cloned());
        self.limits.splice(..0, group.limits.iter().cloned());
    }

    /// Returns whether every caller sees the offer.
    pub(crate) fn is_open(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether all rules hold for a caller. A rule that panics is this request's problem alone (Z1), and shows
    /// nothing.
    pub(crate) fn shows(&self, viewer: &Viewer<'_>) -> Result<bool, ErrorObject> {
        if self.is_open() {
            return Ok(true);
        }
        catch_unwind(AssertUnwindSafe(|| self.rules.iter().all(|rule| rule(viewer)))).map_err(|_| panicked())
    }

    /// Returns the caching hints of a result that only some callers may see: never public.
    pub(crate) fn narrowed(&self, cache: Cache) -> Cache {
        if self.is_open() { cache } else { cache.unshared() }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hooks, rules, limits) = (self.hooks.len(), self.rules.len(), self.limits.len());
        write!(f, "Scope({hooks} hooks, {rules} rules, {limits} limits)")
    }
}

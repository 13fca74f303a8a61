//! [`Scope`]: the hooks, visibility rules and rate limits of an offer or a group.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roundtrip_core::auth::{ScopeSet, check_scopes};
use roundtrip_core::wire::ErrorObject;

use super::around::Hook;
use super::viewer::Viewer;
use crate::server::access::Access;
use crate::server::cache::Cache;
use crate::server::outcome::panicked;
use crate::server::rate::RateLimit;

type Rule = Arc<dyn Fn(&Viewer<'_>) -> bool + Send + Sync>;

/// Hooks, visibility rules and rate limits of an offer: those of its groups first, the outermost group's first of all, then its own.
/// The scopes of tokens that its callers need are those of its groups and its own.
#[derive(Clone, Default)]
pub(crate) struct Scope {
    pub(crate) hooks: Vec<Hook>,
    rules: Vec<Rule>,
    /// `None` if callers need no scopes.
    needed: Option<Arc<ScopeSet>>,
    /// The first mistake in the scopes.
    mistake: Option<String>,
    pub(crate) limits: Vec<RateLimit>,
}

impl Scope {
    pub(crate) fn add_rule(&mut self, rule: impl Fn(&Viewer<'_>) -> bool + Send + Sync + 'static) {
        self.rules.push(Arc::new(rule));
    }

    /// Adds scopes that callers need.
    pub(crate) fn add_needed<S: AsRef<str>>(&mut self, scopes: impl IntoIterator<Item = S>) {
        let read = ScopeSet::of(scopes).map_err(|error| error.to_string());
        let checked = read.and_then(|set| match check_scopes(&set) {
            Ok(()) => Ok(set),
            Err(error) => Err(error.to_string()),
        });
        match checked {
            Ok(scopes) => self.unite(&scopes),
            Err(mistake) => drop(self.mistake.get_or_insert(mistake)),
        }
    }

    fn unite(&mut self, scopes: &ScopeSet) {
        let all = self.needed.as_ref().map_or_else(|| scopes.clone(), |needed| needed.union(scopes));
        self.needed = (!all.is_empty()).then(|| Arc::new(all));
    }

    /// Puts the scope of a group around this one.
    pub(crate) fn surround(&mut self, group: &Self) {
        self.hooks.splice(..0, group.hooks.iter().cloned());
        self.rules.splice(..0, group.rules.iter().cloned());
        self.limits.splice(..0, group.limits.iter().cloned());
        if let Some(needed) = &group.needed {
            self.unite(needed);
        }
        self.mistake = self.mistake.take().or_else(|| group.mistake.clone());
    }

    /// Returns the mistake in the scopes, if there is one.
    pub(crate) fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }

    /// Returns the scopes that callers need.
    pub(crate) fn needed(&self) -> Option<&Arc<ScopeSet>> {
        self.needed.as_ref()
    }

    /// Refuses a caller that lacks scopes.
    pub(crate) fn permits(&self, access: &Access) -> Result<(), ErrorObject> {
        self.needed.as_ref().map_or(Ok(()), |needed| access.need(needed, None))
    }

    /// Returns whether every caller sees the offer.
    pub(crate) fn is_open(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether every caller sees the offer and may use it.
    pub(crate) fn is_free(&self) -> bool {
        self.is_open() && self.needed.is_none()
    }

    /// Returns whether a caller finds the offer in lists.
    pub(crate) fn lists(&self, viewer: &Viewer<'_>) -> Result<bool, ErrorObject> {
        Ok(self.shows(viewer)? && (!viewer.access().hides() || self.permits(viewer.access()).is_ok()))
    }

    /// Returns whether a caller is told of changes: it sees the offer, and may use it.
    pub(crate) fn tells(&self, viewer: &Viewer<'_>) -> bool {
        self.shows(viewer).unwrap_or(false) && self.permits(viewer.access()).is_ok()
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
        if self.is_free() { cache } else { cache.unshared() }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hooks, rules, limits) = (self.hooks.len(), self.rules.len(), self.limits.len());
        write!(f, "Scope({hooks} hooks, {rules} rules, {limits} limits)")
    }
}

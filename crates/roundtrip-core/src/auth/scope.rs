//! Scopes: sets of them, and what one implies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// Greatest number of scopes in a set that is read.
const MOST: usize = 512;
/// Longest scope, in bytes.
const LONGEST: usize = 512;

/// The scope by which a client asks for a refresh token.
pub const OFFLINE_ACCESS: &str = "offline_access";

/// A set of scopes, in alphabetical order.
///
/// ```
/// use roundtrip_core::auth::ScopeSet;
///
/// let asked: ScopeSet = "files:write files:read".parse().unwrap();
/// assert_eq!(asked.to_string(), "files:read files:write");
/// assert_eq!(ScopeSet::of(["files:read"]).unwrap(), asked.without("files:write"));
/// assert_eq!(ScopeSet::of_valid(["not a scope"]), ScopeSet::new());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScopeSet(BTreeSet<String>);

/// Reason a text is not a list of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// A character that scopes do not have, or no character at all.
    #[error("a scope has visible ASCII characters without quotes and backslashes")]
    Character,
    /// A scope of more than 512 bytes, or more than 512 scopes.
    #[error("there are more than {MOST} scopes, or one has more than {LONGEST} bytes")]
    TooMany,
}

impl ScopeSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a set from single scopes.
    ///
    /// # Errors
    /// Fails if one of them is not a scope.
    pub fn of<S: AsRef<str>>(scopes: impl IntoIterator<Item = S>) -> Result<Self, ScopeError> {
        let mut set = BTreeSet::new();
        for scope in scopes {
            set.insert(checked(scope.as_ref())?.to_owned());
            if set.len() > MOST {
                return Err(ScopeError::TooMany);
            }
        }
        Ok(Self(set))
    }

    /// Creates a set from a peer's list, without what is not a scope.
    pub fn of_valid<S: AsRef<str>>(scopes: impl IntoIterator<Item = S>) -> Self {
        let valid = scopes.into_iter().filter(|scope| checked(scope.as_ref()).is_ok());
        Self(valid.take(MOST).map(|scope| scope.as_ref().to_owned()).collect())
    }

    /// Returns whether the set has no scope.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of scopes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether a scope is in the set.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Iterates over the scopes in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the scopes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Returns the scopes of this set that `held` does not have.
    #[must_use]
    pub fn missing_from(&self, held: &Self) -> Self {
        Self(self.0.difference(&held.0).cloned().collect())
    }

    /// Returns the set without a scope.
    #[must_use]
    pub fn without(mut self, scope: &str) -> Self {
        self.0.remove(scope);
        self
    }

    /// Returns the set with a scope that is known to be one.
    pub(super) fn with(mut self, scope: &'static str) -> Self {
        self.0.insert(scope.to_owned());
        self
    }
}

/// Checks one scope (RFC 6749, 3.3).
fn checked(scope: &str) -> Result<&str, ScopeError> {
    if scope.len() > LONGEST {
        return Err(ScopeError::TooMany);
    }
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if scope.is_empty() || !scope.bytes().all(fits) {
        return Err(ScopeError::Character);
    }
    Ok(scope)
}

impl std::str::FromStr for ScopeSet {
    type Err = ScopeError;

    /// Reads scopes separated by spaces.
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::of(text.split(' ').filter(|scope| !scope.is_empty()))
    }
}

impl TryFrom<String> for ScopeSet {
    type Error = ScopeError;

    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<ScopeSet> for String {
    fn from(set: ScopeSet) -> Self {
        set.to_string()
    }
}

/// Writes the scopes as a `scope` parameter has them.
impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

/// Scopes that imply others, as a resource server declares them.
#[derive(Debug, Clone, Default)]
pub struct ImpliedScopes(BTreeMap<String, ScopeSet>);

impl ImpliedScopes {
    /// Declares that a scope implies others, and what those imply.
    pub fn add(&mut self, scope: impl Into<String>, implied: &ScopeSet) {
        let set = self.0.entry(scope.into()).or_default();
        *set = set.union(implied);
    }

    /// Returns the scopes that are needed and neither held nor implied by those held.
    pub fn missing(&self, needed: &ScopeSet, held: &ScopeSet) -> ScopeSet {
        let missing = needed.missing_from(held);
        if missing.is_empty() || self.0.is_empty() {
            missing
        } else {
            missing.missing_from(&self.expand(held))
        }
    }

    /// Returns scopes together with all that they imply.
    fn expand(&self, held: &ScopeSet) -> ScopeSet {
        let mut all = BTreeSet::new();
        let mut open: Vec<&str> = held.iter().collect();
        while let Some(scope) = open.pop() {
            if all.insert(scope.to_owned()) {
                open.extend(self.0.get(scope).into_iter().flat_map(ScopeSet::iter));
            }
        }
        ScopeSet(all)
    }
}

//! [`Access`]: the rights of a caller, as its access token grants them.

use std::fmt;
use std::sync::Arc;

use roundtrip_core::auth::{Claims, ImpliedScopes, ScopeSet, TokenRefusal};
use roundtrip_core::error::insufficient_scope;
use roundtrip_core::seal::{Binding, Digest};
use roundtrip_core::wire::ErrorObject;
use serde_json::Value;

use crate::task::TaskRights;

/// Rights of a caller.
///
/// The default has every scope: on stdio and in process nothing checks tokens. Over HTTP, rights come from the token that
/// `Http::authorize` has checked.
#[derive(Clone, Default)]
pub struct Access(Rights);

#[derive(Clone, Default)]
enum Rights {
    /// No tokens are checked here, nor have to be.
    #[default]
    Local,
    /// Callers come from a network, and nothing checks their tokens.
    Unguarded,
    /// A token was checked.
    Token(Arc<Claims>, Arc<ScopeRules>),
}

/// Rules of a server about scopes, the same for all its callers.
#[derive(Debug, Default)]
pub(crate) struct ScopeRules {
    /// Scopes that every request needs.
    pub(crate) needed: ScopeSet,
    /// Scopes that imply others.
    pub(crate) implied: ImpliedScopes,
    /// Leaves out of lists what the caller lacks scopes for.
    pub(crate) list_permitted: bool,
}

impl Access {
    /// Creates the rights of a caller on a network without a guard: it has no scopes.
    pub(crate) fn unguarded() -> Self {
        Self(Rights::Unguarded)
    }

    /// Creates the rights that a checked token grants.
    pub(crate) fn granted(claims: Arc<Claims>, rules: Arc<ScopeRules>) -> Self {
        Self(Rights::Token(claims, rules))
    }

    /// Returns the claims of the caller's token, if one was checked.
    pub fn claims(&self) -> Option<&Claims> {
        match &self.0 {
            Rights::Token(claims, _) => Some(claims),
            Rights::Local | Rights::Unguarded => None,
        }
    }

    /// Returns the digest of the OAuth client that the caller's token was issued to, if it names one.
    pub(crate) fn client(&self) -> Option<Digest> {
        let claims = self.claims()?;
        let issuer = claims.all.get("iss").and_then(Value::as_str).unwrap_or_default();
        claims.client_id.as_deref().map(|client_id| Binding::client(issuer, client_id))
    }

    /// Returns whether the caller has these scopes, by itself or by those that imply them.
    pub fn has(&self, needed: &ScopeSet) -> bool {
        match &self.0 {
            Rights::Local => true,
            Rights::Unguarded => needed.is_empty(),
            Rights::Token(claims, rules) => rules.implied.missing(needed, &claims.scopes).is_empty(),
        }
    }

    /// Refuses a call that needs scopes which the caller does not have. The error names all that the call needs: the server's,
    /// those of its `offer`, and these (O31).
    pub(crate) fn need(&self, needed: &ScopeSet, offer: Option<&ScopeSet>) -> Result<(), ErrorObject> {
        if self.has(needed) {
            return Ok(());
        }
        let Rights::Token(_, rules) = &self.0 else { return Err(unguarded()) };
        let all = rules.needed.union(needed);
        let all = offer.map_or_else(|| all.clone(), |offer| all.union(offer));
        Err(insufficient_scope(&all.to_string()))
    }

    /// Returns whether lists leave out what the caller lacks scopes for.
    pub(crate) fn hides(&self) -> bool {
        matches!(&self.0, Rights::Token(_, rules) if rules.list_permitted)
    }

    /// Returns the rights to keep with a task. Scopes that others imply are among them: a worker knows no guard.
    pub(crate) fn kept(&self) -> Option<TaskRights> {
        match &self.0 {
            Rights::Local => None,
            Rights::Unguarded => Some(TaskRights::default()),
            Rights::Token(claims, rules) => {
                Some(TaskRights { scopes: rules.implied.expand(&claims.scopes), claims: claims.all.clone() })
            }
        }
    }

    /// Returns the rights that were kept with a task.
    ///
    /// # Errors
    /// Fails if the claims are not those of a token.
    pub(crate) fn restore(rights: &TaskRights) -> Result<Self, TokenRefusal> {
        if rights.claims.is_empty() {
            return Ok(Self::unguarded());
        }
        let mut claims = Claims::restore(rights.claims.clone())?;
        claims.scopes = rights.scopes.clone();
        Ok(Self::granted(Arc::new(claims), Arc::default()))
    }
}

/// Returns the error of an offer with scopes on a server that checks no tokens.
fn unguarded() -> ErrorObject {
    tracing::error!("a call needs scopes, and nothing checks tokens: add `Http::authorize`");
    ErrorObject::internal("the server is not set up for this call")
}

/// Shows scopes, and no claims: they may be personal.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rights::Local => f.write_str("Access(local)"),
            Rights::Unguarded => f.write_str("Access(unguarded)"),
            Rights::Token(claims, _) => f.debug_tuple("Access").field(&claims.scopes).finish(),
        }
    }
}

//! Claims of an access token whose signature was verified (RFC 9068, 4).

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::jwt::JwtHeader;
use super::principal::principal_of;
use super::scope::ScopeSet;
use crate::seal::Timestamp;

/// Greatest difference of clocks that is allowed for.
pub const MAX_LEEWAY: Duration = Duration::from_secs(60);

/// Claims that only ID tokens have: a token with one of them says who signed in, and grants nothing.
const OF_ID_TOKENS: [&str; 4] = ["nonce", "at_hash", "c_hash", "s_hash"];

/// Names of an access token in the answer of an introspection endpoint.
const OF_ACCESS_TOKENS: [&str; 7] = [
    "access",
    "access_token",
    "at+jwt",
    "jwt",
    "bearer",
    "dpop",
    "urn:ietf:params:oauth:token-type:access_token",
];

/// Reason a token is refused, for the log. The client learns none of them: each is the same 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// More than 16 KiB; not decoded.
    #[error("the token is longer than allowed")]
    TooLarge,
    /// Not a signed token in compact form, or its JSON is not that of one.
    #[error("the token is malformed")]
    Malformed,
    /// `none`, a symmetric algorithm, or an unknown one.
    #[error("the token's algorithm is not accepted: only asymmetric signatures are")]
    Algorithm,
    /// `crit` is there: it names extensions that must be understood.
    #[error("the token has `crit`")]
    Critical,
    /// No key of the issuer fits.
    #[error("no key of the issuer fits the token's `kid` and `alg`")]
    UnknownKey,
    /// The signature is not by the key.
    #[error("the token's signature is wrong")]
    Signature,
    /// Not an access token by its `typ`, or by what introspection says.
    #[error(
        "the token is not an access token: its `typ` is not `at+jwt`, or introspection says otherwise; accept untyped \
         tokens for this issuer if it gives none"
    )]
    Kind,
    /// A claim that only ID tokens have.
    #[error("the token is an ID token: the client sent the wrong one")]
    IdToken,
    /// Bound to a key or a certificate.
    #[error(
        "the token is bound by its `cnf`, and this server checks no proof: accept bound tokens if a proxy checks it"
    )]
    Bound,
    /// Introspection says that it is not active.
    #[error("the token is not active")]
    Inactive,
    /// The author's own check refused it.
    #[error("the server's own check refused the token")]
    NotVerified,
    /// Another issuer, or none.
    #[error("the token's `iss` is not one of the configured issuers")]
    Issuer,
    /// Another audience, or none.
    #[error("the token's `aud` is not this resource: it was made for another one")]
    Audience,
    /// No `exp`.
    #[error("the token has no `exp`")]
    NoExpiry,
    /// Expired.
    #[error("the token has expired")]
    Expired,
    /// `nbf` or `iat` lies in the future.
    #[error("the token is not valid yet: its `nbf` or `iat` is in the future")]
    NotYetValid,
    /// A claim has another JSON type than it should.
    #[error("the token's claim `{0}` has the wrong type")]
    Type(&'static str),
    /// Neither `sub` nor `client_id`.
    #[error("the token names neither a subject nor a client")]
    NoPrincipal,
}

/// An issuer, and whether its access tokens may be without `typ`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Issuer {
    name: String,
    untyped: bool,
}

/// Rules for the claims of a resource's tokens. An audience is always checked.
#[derive(Debug, Clone)]
pub struct ClaimRules {
    issuers: Vec<Issuer>,
    audiences: Vec<String>,
    leeway: Duration,
    accept_bound: bool,
}

impl ClaimRules {
    /// Creates the rules of a resource. No issuer is accepted yet; the leeway is 60 seconds.
    pub fn new(resource: impl Into<String>) -> Self {
        let audiences = vec![resource.into()];
        Self { issuers: Vec::new(), audiences, leeway: MAX_LEEWAY, accept_bound: false }
    }

    /// Accepts an issuer, whose tokens have the type `at+jwt`.
    #[must_use]
    pub fn issuer(self, issuer: impl Into<String>) -> Self {
        self.accept(issuer.into(), false)
    }

    /// Accepts an issuer whose access tokens have the type `JWT`, or none.
    #[must_use]
    pub fn untyped_issuer(self, issuer: impl Into<String>) -> Self {
        self.accept(issuer.into(), true)
    }

    /// Accepts another audience beside the resource itself.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the difference of clocks that is allowed for, up to a minute.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway.min(MAX_LEEWAY);
        self
    }

    /// Accepts tokens that are bound to a key or a certificate (`cnf`), whose proof is checked elsewhere.
    #[must_use]
    pub fn accept_bound(mut self) -> Self {
        self.accept_bound = true;
        self
    }

    fn accept(mut self, name: String, untyped: bool) -> Self {
        self.issuers.retain(|issuer| issuer.name != name);
        self.issuers.push(Issuer { name, untyped });
        self
    }

    /// Checks the claims of a token whose signature was verified.
    ///
    /// # Errors
    /// Fails if the token is not for this resource, now, from an issuer that is accepted.
    pub fn check(
        &self,
        header: &JwtHeader,
        claims: Map<String, Value>,
        now: Timestamp,
    ) -> Result<Claims, TokenRefusal> {
        let issuer = text(&claims, "iss")?.ok_or(TokenRefusal::Issuer)?;
        let known = self.issuers.iter().find(|known| known.name == issuer).ok_or(TokenRefusal::Issuer)?;
        match header.kind.as_deref() {
            Some("at+jwt") => {}
            None | Some("jwt") if known.untyped => refuse_id_token(&claims)?,
            _ => return Err(TokenRefusal::Kind),
        }
        self.finish(claims, now)
    }

    /// Checks the answer of an introspection endpoint (RFC 7662, 2.2). `issuer` is whose endpoint it is: an answer may leave
    /// `iss` out.
    ///
    /// # Errors
    /// Fails if the token is not active, or not for this resource, now, from that issuer.
    pub fn check_introspected(
        &self,
        issuer: &str,
        mut claims: Map<String, Value>,
        now: Timestamp,
    ) -> Result<Claims, TokenRefusal> {
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(TokenRefusal::Inactive);
        }
        let found = text(&claims, "iss")?.is_none_or(|found| found == issuer);
        if !found || !self.issuers.iter().any(|known| known.name == issuer) {
            return Err(TokenRefusal::Issuer);
        }
        self.check_use(&claims)?;
        claims.insert("iss".to_owned(), issuer.into());
        self.finish(claims, now)
    }

    /// Checks the claims that an author's own check found in a token.
    ///
    /// # Errors
    /// Fails if the token is not for this resource, now, from an issuer that is accepted.
    pub fn check_verified(&self, claims: Map<String, Value>, now: Timestamp) -> Result<Claims, TokenRefusal> {
        let issuer = text(&claims, "iss")?.ok_or(TokenRefusal::Issuer)?;
        if !self.issuers.iter().any(|known| known.name == issuer) {
            return Err(TokenRefusal::Issuer);
        }
        self.finish(claims, now)
    }

    /// Checks a token whose signature was verified, and which [`check`](Self::check) refused: it may lack what its issuer knows
    /// by introspection, its type, audience, expiry or subject. What it has must be right all the same.
    ///
    /// # Errors
    /// Fails if something in it is against it: no answer of the issuer makes it a token for this resource.
    pub fn check_incomplete(
        &self,
        header: &JwtHeader,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<(), TokenRefusal> {
        if !matches!(header.kind.as_deref(), None | Some("jwt" | "at+jwt")) {
            return Err(TokenRefusal::Kind);
        }
        refuse_id_token(claims)?;
        self.check_binding(claims)?;
        if claims.contains_key("aud") {
            self.check_audience(claims)?;
        }
        match self.check_times(claims, now) {
            Err(TokenRefusal::NoExpiry) => Ok(()),
            checked => checked.map(drop),
        }
    }

    /// Checks binding, audience and times, and reads the rest.
    fn finish(&self, claims: Map<String, Value>, now: Timestamp) -> Result<Claims, TokenRefusal> {
        self.check_binding(&claims)?;
        self.check_audience(&claims)?;
        let expires_at = self.check_times(&claims, now)?;
        Claims::read(claims, expires_at)
    }

    /// Refuses a token that is worth something with a proof only (RFC 9449, 7.2; RFC 8705, 3): here it is a bearer token.
    fn check_binding(&self, claims: &Map<String, Value>) -> Result<(), TokenRefusal> {
        if claims.contains_key("cnf") && !self.accept_bound { Err(TokenRefusal::Bound) } else { Ok(()) }
    }

    /// Checks that an introspected token is an access token, as far as the answer says: an endpoint knows refresh tokens and
    /// ID tokens too.
    fn check_use(&self, claims: &Map<String, Value>) -> Result<(), TokenRefusal> {
        for name in ["token_use", "typ", "token_type"] {
            let Some(kind) = text(claims, name)? else { continue };
            let kind = kind.to_ascii_lowercase();
            // RFC 7515, 4.1.9: media types are written with or without it.
            let kind = kind.strip_prefix("application/").unwrap_or(&kind);
            if kind == "dpop" && !self.accept_bound {
                return Err(TokenRefusal::Bound);
            }
            if !OF_ACCESS_TOKENS.contains(&kind) {
                return Err(TokenRefusal::Kind);
            }
        }
        Ok(())
    }

    fn check_audience(&self, claims: &Map<String, Value>) -> Result<(), TokenRefusal> {
        let audience = texts(claims, "aud")?;
        if !audience.iter().any(|audience| self.audiences.iter().any(|ours| ours == audience)) {
            return Err(TokenRefusal::Audience);
        }
        Ok(())
    }

    fn check_times(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<Timestamp, TokenRefusal> {
        let expires_at = time(claims, "exp")?;
        let (not_before, issued_at) = (time(claims, "nbf")?, time(claims, "iat")?);
        if expires_at.is_some_and(|expires_at| now >= expires_at.plus(self.leeway)) {
            return Err(TokenRefusal::Expired);
        }
        let latest = now.plus(self.leeway);
        if not_before.into_iter().chain(issued_at).any(|time| time > latest) {
            return Err(TokenRefusal::NotYetValid);
        }
        expires_at.ok_or(TokenRefusal::NoExpiry)
    }
}

/// Claims of a token that was accepted.
#[derive(Clone)]
#[non_exhaustive]
pub struct Claims {
    /// Principal: issuer and subject, or issuer and client where there is no subject.
    pub principal: String,
    /// `sub`.
    pub subject: Option<String>,
    /// `client_id`, or `azp` where that is missing.
    pub client_id: Option<String>,
    /// `scope` or `scp`.
    pub scopes: ScopeSet,
    /// `exp`.
    pub expires_at: Timestamp,
    /// All claims, as they came.
    pub all: Map<String, Value>,
}

impl Claims {
    /// Reads claims that were checked before, and kept by the server itself. No time is compared: what they allowed then
    /// goes on.
    ///
    /// # Errors
    /// Fails if they are not those of a token.
    pub fn restore(all: Map<String, Value>) -> Result<Self, TokenRefusal> {
        let expires_at = time(&all, "exp")?.unwrap_or(Timestamp::from_unix(0));
        Self::read(all, expires_at)
    }

    fn read(all: Map<String, Value>, expires_at: Timestamp) -> Result<Self, TokenRefusal> {
        let issuer = text(&all, "iss")?.ok_or(TokenRefusal::Issuer)?;
        let subject = text(&all, "sub")?.map(str::to_owned);
        let client_id = text(&all, "client_id")?.or(text(&all, "azp")?).map(str::to_owned);
        let principal = principal_of(issuer, subject.as_deref(), client_id.as_deref());
        let principal = principal.ok_or(TokenRefusal::NoPrincipal)?;
        let scopes = scopes(&all, "scope")?.union(&scopes(&all, "scp")?);
        Ok(Self { principal, subject, client_id, scopes, expires_at, all })
    }
}

/// Shows no claims: they may be personal.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Claims");
        shown.field("client_id", &self.client_id).field("scopes", &self.scopes);
        shown.field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

fn refuse_id_token(claims: &Map<String, Value>) -> Result<(), TokenRefusal> {
    let found = OF_ID_TOKENS.iter().any(|name| claims.contains_key(*name));
    if found { Err(TokenRefusal::IdToken) } else { Ok(()) }
}

fn text<'a>(claims: &'a Map<String, Value>, name: &'static str) -> Result<Option<&'a str>, TokenRefusal> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(TokenRefusal::Type(name)),
    }
}

/// Reads a text, or a list of texts.
fn texts<'a>(claims: &'a Map<String, Value>, name: &'static str) -> Result<Vec<&'a str>, TokenRefusal> {
    let wrong = TokenRefusal::Type(name);
    match claims.get(name) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) => list.iter().map(|item| item.as_str().ok_or(wrong)).collect(),
        Some(_) => Err(wrong),
    }
}

/// Reads scopes: separated by spaces, or as a list.
fn scopes(claims: &Map<String, Value>, name: &'static str) -> Result<ScopeSet, TokenRefusal> {
    let texts = texts(claims, name)?;
    let single = texts.iter().flat_map(|text| text.split(' ')).filter(|scope| !scope.is_empty());
    ScopeSet::of(single).map_err(|_| TokenRefusal::Type(name))
}

/// Reads a time. Parts of a second are dropped: they are shorter than any leeway.
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<Timestamp>, TokenRefusal> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let whole = value.as_u64().or_else(|| {
        // Beyond 2^53 seconds a fraction is not a time any more.
        value.as_f64().filter(|time| (0.0..9.0e15).contains(time)).map(|time| time as u64)
    });
    whole.map(|time| Some(Timestamp::from_unix(time))).ok_or(TokenRefusal::Type(name))
}

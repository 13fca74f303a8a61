//! Tokens without their calls, for operators.

use std::fmt;

use super::{Claims, KeyId, Keyring, Rejected, Suite, TokenLimits, token};

/// Content of a token that was opened without a call to compare it with.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspected {
    /// The key that sealed it.
    pub key: KeyId,
    /// The suite that sealed it.
    pub suite: Suite,
    /// Its claims. They are authentic, and compared with nothing: neither its times nor its binding need hold.
    pub claims: Claims,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Inspected {
    /// Hides the payload, as the seal does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspected")
            .field("key", &self.key)
            .field("suite", &self.suite)
            .field("claims", &self.claims)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .finish()
    }
}

/// Opens a token, whatever call it belongs to and whenever it expires. Its seal is checked as always.
///
/// This is for people who hold the keys and look into a flow. A server opens tokens with [`Keyring::open`], which
/// compares them with the call.
///
/// # Errors
/// Fails if the token does not open with a key of the ring.
pub fn inspect(keyring: &Keyring, token: &str, limits: &TokenLimits) -> Result<Inspected, Rejected> {
    let (bytes, start, key, suite) = keyring.unseal(token, limits)?;
    let (claims, payload) = token::split(bytes, start).map_err(|reason| Rejected::by_key(reason, key))?;
    Ok(Inspected { key, suite, claims, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::{
        Binding, BindingParts, DEFAULT_TTL, FlowId, Key, Reason, Timestamp, TokenVersion, digest_arguments,
    };

    fn ring(secret: u8) -> Keyring {
        Keyring::new([Key::generate([secret; 32])]).expect("one key")
    }

    fn token(ring: &Keyring) -> (Claims, String) {
        let binding = Binding::new(BindingParts {
            audience: "bookings",
            method: "tools/call",
            target: "book_table",
            arguments: digest_arguments(None).expect("no arguments"),
            principal: Some("alice"),
        });
        let binding = binding.through(Some(Binding::client("https://login.example", "agent")));
        let claims = Claims::begin(FlowId::new([1; 16]), binding, Timestamp::from_unix(7), DEFAULT_TTL);
        let claims = Claims { version: TokenVersion::V2, ..claims };
        let token = ring.seal(&claims, b"the journal", [2; 24], &TokenLimits::default()).expect("it fits");
        (claims, token)
    }

    #[test]
    fn an_expired_token_of_any_call_is_shown() {
        let ring = ring(7);
        let (claims, token) = token(&ring);
        let seen = inspect(&ring, &token, &TokenLimits::default()).expect("it opens");
        assert_eq!((seen.claims, seen.payload.as_slice()), (claims, b"the journal".as_slice()));
        assert_eq!(Some(seen.key), ring.key_ids().next());
        let digests = seen.claims.binding.digests();
        assert!(digests.iter().all(|(_, digest)| digest.is_some()), "{digests:?}");
    }

    /// S3: the seal is checked though nothing else is.
    #[test]
    fn a_token_that_was_changed_or_sealed_elsewhere_is_not_shown() {
        let (_, sealed) = token(&ring(7));
        let limits = TokenLimits::default();
        let reason = |ring: &Keyring, token: &str| inspect(ring, token, &limits).expect_err("refused").reason;
        assert_eq!(reason(&ring(8), &sealed), Reason::UnknownKey);
        let last = if sealed.ends_with('A') { 'B' } else { 'A' };
        let middle = format!("{}{last}{}", &sealed[..60], &sealed[61..]);
        assert!(middle == sealed || reason(&ring(7), &middle) == Reason::Forged);
        assert_eq!(reason(&ring(7), "no token"), Reason::Malformed);
        assert_eq!(reason(&ring(7), ""), Reason::Malformed);
    }
}

//! Keys of rounds in the ledger.

use std::hash::{Hash, Hasher};

use roundtrip_core::round::Stalled;
use roundtrip_core::seal::{Claims, Digest, digest_arguments};
use roundtrip_core::wire::{ErrorObject, json};
use serde_json::value::RawValue;

use crate::server::round::RoundInput;

/// Member of a request's `_meta` with the caller's own key, for a call that it may have to repeat.
pub use roundtrip_core::wire::meta::key::IDEMPOTENCY_KEY;

/// Longest key of a caller, in characters.
const LONGEST: usize = 128;

/// Identity of a round, the same on every instance, and its owner.
#[derive(Debug, Clone, Copy)]
pub struct RoundKey {
    id: [u8; Self::LEN],
    call: Digest,
    owner: Digest,
}

/// Keys of one round are equal for all owners: a caller may connect from another address the second time.
impl PartialEq for RoundKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.call == other.call
    }
}

impl Eq for RoundKey {}

impl Hash for RoundKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        self.call.hash(state);
    }
}

impl RoundKey {
    /// Length of an id in bytes.
    pub const LEN: usize = 20;

    /// Creates a key without an owner, as tests of a ledger need one.
    ///
    /// ```
    /// use roundtrip::seal::Digest;
    /// use roundtrip::server::ledger::RoundKey;
    ///
    /// let [call, ada, bob] = [1, 2, 3].map(|byte| Digest::from_bytes([byte; Digest::LEN]));
    /// let key = RoundKey::new([7; RoundKey::LEN], call);
    /// assert_eq!(key.owned_by(ada), key.owned_by(bob)); // one round, whose share it takes
    /// assert_eq!(key.owned_by(ada).owner(), &ada);
    /// ```
    pub const fn new(id: [u8; Self::LEN], call: Digest) -> Self {
        Self { id, call, owner: Digest::from_bytes([0; Digest::LEN]) }
    }

    /// Returns the same key with another owner.
    #[must_use]
    pub const fn owned_by(self, owner: Digest) -> Self {
        Self { owner, ..self }
    }

    /// Returns the id that tells rounds apart: a flow's id, and the number of its rounds up to the token presented that were
    /// progress. So a token and the one of a round that only asked again are one and the same.
    /// For a first round with a key of its caller: a digest of that key and its owner, and the number 0.
    pub const fn id(&self) -> &[u8; Self::LEN] {
        &self.id
    }

    /// Returns the digest of the call. The same id with another call is [`Claim::OtherCall`](super::Claim::OtherCall).
    pub const fn call(&self) -> &Digest {
        &self.call
    }

    /// Returns the digest of the caller whose share of a ledger the record takes: of the server's audience, and of the principal or
    /// the address of a caller without one. It is not part of a round's identity: look records up by [`id`](Self::id) alone.
    pub const fn owner(&self) -> &Digest {
        &self.owner
    }

    /// Creates the key of a round that began with a token. Tokens are bound to their call already.
    /// Rounds that were no progress do not count: no two of a flow's tokens give one question two answers.
    pub(super) fn of_token(claims: &Claims, stalled: Stalled) -> Self {
        let round = claims.round.saturating_sub(stalled.rounds);
        Self::numbered(claims.flow.as_bytes(), round, Digest::from_bytes([0; Digest::LEN]))
    }

    /// Creates the key of a round without a token, from its caller's key.
    pub(super) fn of_caller(key: &str, input: &RoundInput<'_>) -> Result<Self, ErrorObject> {
        let invalid = |place: &str, error: &dyn std::fmt::Display| {
            ErrorObject::invalid_params(format!("params.{place}: {error}"))
        };
        let arguments = input.arguments.digest().map_err(|error| invalid("arguments", &error))?;
        // Without `requestState`, only `inputResponses` tell a later round from the first.
        let answers = input.responses.map(RawValue::get).filter(|text| *text != "null");
        let answers = match answers {
            Some(text) => digest_arguments(Some(text))
                .map_err(|error| invalid("inputResponses", &error))?
                .as_bytes()
                .to_vec(),
            None => Vec::new(),
        };
        let (known, principal) = input.principal.map_or((b"0", ""), |principal| (b"1", principal));
        let owner = [input.flows.audience.as_bytes(), known, principal.as_bytes(), key.as_bytes(), &answers];
        let call = [input.method.as_bytes(), input.target.as_bytes(), arguments.as_bytes()];
        Ok(Self::numbered(Digest::of("idempotency key", &owner).as_bytes(), 0, Digest::of("call", &call)))
    }

    fn numbered(first: &[u8; 16], round: u32, call: Digest) -> Self {
        let mut id = [0; Self::LEN];
        id.iter_mut().zip(first.iter().chain(&round.to_be_bytes())).for_each(|(to, from)| *to = *from);
        Self::new(id, call)
    }
}

/// Reads the caller's key from `_meta`.
pub(super) fn read(raw: &RawValue) -> Result<String, ErrorObject> {
    let key: Option<String> = json::from_str(raw.get()).ok();
    key.filter(|key| !key.is_empty() && key.chars().take(LONGEST + 1).count() <= LONGEST).ok_or_else(|| {
        let message =
            format!("params._meta.{IDEMPOTENCY_KEY}: must be a string of 1 to {LONGEST} characters");
        ErrorObject::invalid_params(message)
    })
}

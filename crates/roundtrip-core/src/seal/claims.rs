//! Claims of a token, and their encoding.
//!
//! The bytes are written by hand: the fields are few and of fixed size, there is exactly one spelling of each
//! value, and nothing that a token holds can change because a library's encoding did.

use std::time::Duration;

use super::digest::show_in_hex;
use super::{Binding, CLOCK_SKEW, Digest, Reason, Timestamp, TokenVersion};

/// Flag for a principal that follows.
const PRINCIPAL: u8 = 1;
/// Flag for an OAuth client that follows, from the second version on.
const CLIENT: u8 = 2;
/// Greatest length of encoded claims, in bytes.
pub(super) const MAX_LEN: usize = 2 + 16 + 4 + 3 * 8 + 5 * Digest::LEN;

/// Id of a flow: a call and all its retries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId([u8; 16]);

impl FlowId {
    /// Creates an id from random bytes.
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

show_in_hex!(FlowId);

/// Claims inside a token: its flow, round, times and binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// The version of the token. The encodings of the claims and of the payload depend on it.
    pub version: TokenVersion,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// The round that made it, counted from 1.
    pub round: u32,
    /// Time at which the first round's token was made.
    pub started_at: Timestamp,
    /// Time at which this token was made.
    pub issued_at: Timestamp,
    /// Time after which it is refused.
    pub expires_at: Timestamp,
    /// The call it may be presented with.
    pub binding: Binding,
}

impl Claims {
    /// Creates the claims of a flow's first round.
    pub fn begin(flow: FlowId, binding: Binding, now: Timestamp, ttl: Duration) -> Self {
        let version = TokenVersion::default();
        Self { version, flow, round: 1, started_at: now, issued_at: now, expires_at: now.plus(ttl), binding }
    }

    /// Creates the claims of the next round.
    #[must_use]
    pub fn next_round(&self, now: Timestamp, ttl: Duration) -> Self {
        Self { round: self.round.saturating_add(1), issued_at: now, expires_at: now.plus(ttl), ..*self }
    }

    /// Returns the time from the making of the token to its end.
    pub fn lifetime(&self) -> Duration {
        Duration::from_secs(self.expires_at.as_unix().saturating_sub(self.issued_at.as_unix()))
    }

    /// Checks that a token with these claims is valid for that call, now.
    pub(super) fn check(
        &self,
        expected: &Binding,
        now: Timestamp,
        max_flow_age: Option<Duration>,
        clock_skew: Duration,
    ) -> Result<(), Reason> {
        self.known_binding(expected).check(expected)?;
        // Always some: a clock that is set back must not refuse what it has just sealed, and no token lives longer by this.
        if self.issued_at > now.plus(clock_skew.max(CLOCK_SKEW)) {
            return Err(Reason::NotYetValid);
        }
        if now > self.expires_at.plus(clock_skew) {
            return Err(Reason::Expired);
        }
        match max_flow_age {
            Some(age) if now > self.started_at.plus(age).plus(clock_skew) => Err(Reason::FlowTooOld),
            _ => Ok(()),
        }
    }

    /// Returns the binding of the token. What its version does not say is taken from the call.
    fn known_binding(&self, expected: &Binding) -> Binding {
        match self.version {
            TokenVersion::V1 => self.binding.through(expected.client),
            TokenVersion::V2 => self.binding,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let Binding { principal, .. } = self.binding;
        let client = self.binding.client.filter(|_| self.version >= TokenVersion::V2);
        let flag = |digest: Option<Digest>, flag: u8| if digest.is_some() { flag } else { 0 };
        let flags = flag(principal, PRINCIPAL) | flag(client, CLIENT);
        out.extend_from_slice(&[self.version.as_byte(), flags]);
        out.extend_from_slice(&self.flow.0);
        out.extend_from_slice(&self.round.to_le_bytes());
        for moment in [self.started_at, self.issued_at, self.expires_at] {
            out.extend_from_slice(&moment.as_unix().to_le_bytes());
        }
        for digest in [self.binding.audience, self.binding.target, self.binding.arguments] {
            out.extend_from_slice(digest.as_bytes());
        }
        for digest in [principal, client].into_iter().flatten() {
            out.extend_from_slice(digest.as_bytes());
        }
    }

    /// Decodes claims from the front of `rest`, leaving the payload.
    pub(super) fn decode(rest: &mut &[u8]) -> Result<Self, Reason> {
        let [format] = take(rest)?;
        let version = TokenVersion::of_byte(format).ok_or(Reason::Format(format))?;
        let known = match version {
            TokenVersion::V1 => PRINCIPAL,
            TokenVersion::V2 => PRINCIPAL | CLIENT,
        };
        let [flags] = take(rest)?;
        if flags & !known != 0 {
            return Err(Reason::Malformed);
        }
        Ok(Self {
            version,
            flow: FlowId(take(rest)?),
            round: u32::from_le_bytes(take(rest)?),
            started_at: moment(rest)?,
            issued_at: moment(rest)?,
            expires_at: moment(rest)?,
            binding: Binding {
                audience: digest(rest)?,
                target: digest(rest)?,
                arguments: digest(rest)?,
                principal: if flags & PRINCIPAL == 0 { None } else { Some(digest(rest)?) },
                client: if flags & CLIENT == 0 { None } else { Some(digest(rest)?) },
            },
        })
    }
}

fn moment(rest: &mut &[u8]) -> Result<Timestamp, Reason> {
    take(rest).map(|bytes| Timestamp::from_unix(u64::from_le_bytes(bytes)))
}

fn digest(rest: &mut &[u8]) -> Result<Digest, Reason> {
    take(rest).map(Digest::from_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Reason> {
    let (head, tail) = rest.split_first_chunk().ok_or(Reason::Malformed)?;
    *rest = tail;
    Ok(*head)
}

//! A look into a token, for people who hold its keys: claims, open questions, journal.

use super::{Journal, Kind, MalformedJournal};
use crate::seal::{self, Inspected, Keyring, Rejected, TokenLimits};

/// A flow as its token has it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Flow {
    /// The token: its key and its claims.
    pub token: Inspected,
    /// Entries of the journal.
    pub entries: Vec<Entry>,
}

/// An entry of a journal.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Kind of the entry, in words: `open`, `answer`, `declined`, `step`, ..
    pub kind: &'static str,
    /// Key of the question or step.
    pub key: String,
    /// Answer or result as the journal encodes it: a form's fields in their order, without names. It may be a person's: mask
    /// it before it is shown.
    pub value: String,
}

/// Shows no value.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("kind", &self.kind).field("key", &self.key).finish_non_exhaustive()
    }
}

/// Reason that a token cannot be looked into.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The token does not open.
    #[error("{0}")]
    Rejected(Rejected),
    /// The token opens, and its payload is no journal that this release reads.
    #[error("{0}")]
    Journal(MalformedJournal),
}

/// Opens a token without its call ([`seal::inspect`]) and decodes its journal.
///
/// # Errors
/// Fails if the token does not open with a key of the ring, or holds no journal.
pub fn flow(keyring: &Keyring, token: &str, limits: &TokenLimits) -> Result<Flow, InspectError> {
    let token = seal::inspect(keyring, token, limits).map_err(InspectError::Rejected)?;
    let journal = Journal::decode(&token.payload).map_err(InspectError::Journal)?;
    let entries = journal.entries().map(|(kind, key, value)| Entry {
        kind: name(kind),
        key: key.to_owned(),
        value: value.to_owned(),
    });
    Ok(Flow { entries: entries.collect(), token })
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Open => "open",
        Kind::Given => "unchecked answer",
        Kind::Settled => "answer",
        Kind::Declined => "declined",
        Kind::Cancelled => "cancelled",
        Kind::Step => "step",
        Kind::Failed => "failed step",
        Kind::Begun => "step begun",
        Kind::Passed => "checkpoint",
        Kind::State => "state",
    }
}

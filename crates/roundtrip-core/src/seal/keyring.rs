//! The key ring of a service.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::suite::Ciphers;
use super::{CLOCK_SKEW, Key, KeyError, KeyId, Suite, TokenLimits};

/// The keys of a service. The first seals; every one opens.
///
/// To change keys without losing a flow, deploy three times and let a flow's lifetime pass in between: the new key
/// last (all instances open it), the new key first (all seal with it), the old key gone.
///
/// Tokens are sealed with the [`Suite`] that is quickest on this processor, and every instance opens all suites: a fleet may
/// mix processors.
///
/// A clone shares the keys, which are wiped from memory with the last one.
#[derive(Clone)]
pub struct Keyring {
    slots: Arc<Slots>,
    suite: Suite,
    single_process: bool,
}

struct Slots {
    first: Slot,
    rest: Vec<Slot>,
}

pub(super) struct Slot {
    pub(super) id: KeyId,
    /// Ciphers of tokens.
    pub(super) ciphers: Ciphers,
    /// Ciphers of records in a store.
    pub(super) records: Ciphers,
}

impl Keyring {
    /// Creates a ring of keys, the sealing key first.
    ///
    /// # Errors
    /// Fails if there is no key, or the same key twice.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Self, KeyringError> {
        let mut slots: Vec<Slot> = Vec::new();
        for key in keys {
            let new = key.derive();
            if let Some(first) = slots.iter().position(|slot| slot.id == new.id) {
                return Err(KeyringError::Duplicate { first: first + 1, second: slots.len() + 1 });
            }
            slots.push(new);
        }
        let mut slots = slots.into_iter();
        let first = slots.next().ok_or(KeyringError::Empty)?;
        let slots = Arc::new(Slots { first, rest: slots.collect() });
        Ok(Self { slots, suite: Suite::fastest(), single_process: false })
    }

    /// Seals with this suite. Opening needs no setting: a token names its own suite.
    #[must_use]
    pub fn suite(mut self, suite: Suite) -> Self {
        self.suite = suite;
        self
    }

    /// Declares that no other process has these keys: what they open was sealed by the clock that it is opened by, so no
    /// difference of clocks is allowed for unless [`TokenLimits::clock_skew`] says so.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use roundtrip_core::seal::{CLOCK_SKEW, Key, Keyring, KeyringError, Sealer};
    ///
    /// # fn main() -> Result<(), KeyringError> {
    /// let shared = Keyring::new([Key::generate([7; 32])])?; // random bytes, in earnest
    /// assert_eq!(Sealer::new(shared.clone()).clock_skew(), CLOCK_SKEW);
    /// assert_eq!(Sealer::new(shared.single_process()).clock_skew(), Duration::ZERO);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn single_process(mut self) -> Self {
        self.single_process = true;
        self
    }

    /// Returns whether the keys end with this process, so that no store may depend on them.
    pub fn is_single_process(&self) -> bool {
        self.single_process
    }

    /// Returns the difference of clocks that is allowed for.
    pub(super) fn clock_skew(&self, limits: &TokenLimits) -> Duration {
        let usual = if self.single_process { Duration::ZERO } else { CLOCK_SKEW };
        limits.clock_skew.unwrap_or(usual)
    }

    /// Reads keys as variables and files have them: one to a line or separated by commas, each in base64 or in
    /// hex. From `#` to the end of its line is comment.
    ///
    /// # Errors
    /// Fails if there is no key, one of them twice, or one that is short or malformed. The error says which, and
    /// never what it reads.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(keys, _)| keys));
        let keys = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|key| !key.is_empty());
        let keys: Result<Vec<Key>, KeyringError> = keys
            .zip(1..)
            .map(|(key, number)| Key::from_text(key).map_err(|error| KeyringError::Key { number, error }))
            .collect();
        Self::new(keys?)
    }

    /// Returns the ids of the keys, the sealing key first.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> {
        self.all().map(|slot| slot.id)
    }

    /// Returns the sealing key and its suite.
    pub(super) fn sealing(&self) -> (&Slot, Suite) {
        (&self.slots.first, self.suite)
    }

    /// Finds a key by its id.
    pub(super) fn find(&self, id: KeyId) -> Option<&Slot> {
        self.all().find(|slot| slot.id == id)
    }

    fn all(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.slots.first).chain(&self.slots.rest)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")?;
        f.debug_list().entries(self.key_ids()).finish()
    }
}

/// Reason keys do not make a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// No key at all.
    #[error("a key ring needs at least one key")]
    Empty,
    /// Something that is not a key.
    #[error("key {number}: {error}")]
    Key {
        /// Its position, counted from 1.
        number: usize,
        /// The error.
        error: KeyError,
    },
    /// One key, twice.
    #[error("keys {first} and {second} are the same")]
    Duplicate {
        /// The first position, counted from 1.
        first: usize,
        /// The second position.
        second: usize,
    },
}

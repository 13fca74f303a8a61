//! The keys of a service, the newest first.

use std::fmt;
use std::sync::Arc;

use chacha20poly1305::XChaCha20Poly1305;

use super::{Key, KeyError, KeyId};

/// The keys of a service. The first seals; every one opens.
///
/// To change keys without losing a flow, deploy three times and let a flow's lifetime pass in between: the new key
/// last (all instances open it), the new key first (all seal with it), the old key gone.
///
/// A clone shares the keys, which are wiped from memory with the last one.
#[derive(Clone)]
pub struct Keyring(Arc<Slots>);

struct Slots {
    first: Slot,
    rest: Vec<Slot>,
}

pub(super) struct Slot {
    pub(super) id: KeyId,
    pub(super) cipher: Box<XChaCha20Poly1305>,
}

impl Keyring {
    /// A ring of keys, the one that seals first.
    ///
    /// # Errors
    /// When there is none, or one of them twice.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Self, KeyringError> {
        let mut slots: Vec<Slot> = Vec::new();
        for key in keys {
            let (id, cipher) = key.derive();
            if let Some(first) = slots.iter().position(|slot| slot.id == id) {
                return Err(KeyringError::Duplicate { first: first + 1, second: slots.len() + 1 });
            }
            slots.push(Slot { id, cipher });
        }
        let mut slots = slots.into_iter();
        let first = slots.next().ok_or(KeyringError::Empty)?;
        Ok(Self(Arc::new(Slots { first, rest: slots.collect() })))
    }

    /// Reads keys as variables and files have them: one to a line or separated by commas, each in base64 or in
    /// hex. From `#` to the end of its line is comment.
    ///
    /// # Errors
    /// When there is no key, one of them twice, or one that is short or malformed. The error says which, and
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

    /// The names of the keys, the one that seals first.
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> {
        self.slots().map(|slot| slot.id)
    }

    /// The key that seals.
    pub(super) fn sealing(&self) -> &Slot {
        &self.0.first
    }

    /// The key of that name.
    pub(super) fn find(&self, id: KeyId) -> Option<&Slot> {
        self.slots().find(|slot| slot.id == id)
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.0.first).chain(&self.0.rest)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")?;
        f.debug_list().entries(self.key_ids()).finish()
    }
}

/// Why keys do not make a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// No key at all.
    #[error("a key ring needs at least one key")]
    Empty,
    /// Something that is not a key.
    #[error("key {number}: {error}")]
    Key {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong with it.
        error: KeyError,
    },
    /// One key, twice.
    #[error("keys {first} and {second} are the same")]
    Duplicate {
        /// Where it is first, counted from 1.
        first: usize,
        /// Where it is again.
        second: usize,
    },
}

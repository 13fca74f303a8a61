//! Sealing and opening of what tasks hold (K6).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use roundtrip::seal::{Digest, RecordLabel};
use roundtrip::task::{Chunk, OrphanTask, TaskId, TaskKey, TaskOwner, TaskStoreError};

use super::rows::Answer;
use crate::StoreError;
use crate::vault::{Nonces, Vault};

/// Most tasks that are named in the log because they cannot be opened.
const NAMED: usize = 1_024;

/// Part of a task that is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    View,
    Work,
    Result,
    Call,
    /// Piece of its journal, with its number.
    Journal(u32),
    /// Piece of its result, with its number.
    Parts(u32),
}

impl Field {
    fn kind(self) -> &'static str {
        match self {
            Self::View => "task view",
            Self::Work => "task work",
            Self::Result => "task result",
            Self::Call => "task call",
            Self::Journal(_) => "task journal",
            Self::Parts(_) => "task part",
        }
    }

    /// Returns the stream and the number of a piece. The others are columns of the task.
    pub(crate) fn piece(self) -> Option<(i16, u32)> {
        match self {
            Self::View | Self::Work | Self::Result => None,
            Self::Journal(number) => Some((JOURNAL, number)),
            Self::Parts(number) => Some((PARTS, number)),
            Self::Call => Some((CALL, 0)),
        }
    }

    /// Returns the number of a piece of which there may be several, as a part of its place.
    fn number(self) -> Option<[u8; 4]> {
        match self {
            Self::Journal(number) | Self::Parts(number) => Some(number.to_be_bytes()),
            _ => None,
        }
    }
}

/// Length of what the place of any bytes of a task begins with: its service, its owner and its identifier, which is 32 digits.
const KEY_LEN: usize = 2 * Digest::LEN + 32;

/// Place of the bytes of a task. They open nowhere else: not in another task, not for another owner, and not in another service.
struct Place([u8; KEY_LEN + 4]);

impl Place {
    fn new(key: &TaskKey) -> Self {
        let mut place = [0; KEY_LEN + 4];
        let mut rest = &mut place[..];
        for part in [&key.service.as_bytes()[..], &key.owner.as_bytes()[..], key.id.as_str().as_bytes()] {
            let (own, behind) = rest.split_at_mut(part.len());
            own.copy_from_slice(part);
            rest = behind;
        }
        Self(place)
    }

    /// Returns the place of a field.
    fn of(&mut self, field: Field) -> RecordLabel<'_> {
        let (key, number) = self.0.split_at_mut(KEY_LEN);
        let length = match field.number() {
            Some(own) => {
                number.copy_from_slice(&own);
                KEY_LEN + own.len()
            }
            None => key.len(),
        };
        RecordLabel { kind: field.kind(), id: &self.0[..length] }
    }
}

/// Streams of pieces.
pub(crate) const JOURNAL: i16 = 0;
pub(crate) const PARTS: i16 = 1;
pub(crate) const CALL: i16 = 2;

/// Stored bytes, and the same sealed with the first key of the ring.
#[derive(Debug, Clone)]
pub(crate) struct Reseal {
    pub(crate) id: TaskId,
    pub(crate) field: Field,
    pub(crate) old: Bytes,
    pub(crate) new: Bytes,
}

/// Seals of tasks.
#[derive(Debug)]
pub(super) struct TaskSeals {
    vault: Vault,
    unopened: Mutex<HashSet<TaskId>>,
}

impl TaskSeals {
    pub(super) fn new(vault: Vault) -> Self {
        Self { vault, unopened: Mutex::default() }
    }

    /// Begins to seal fields of a task.
    pub(super) fn sealing(&self, key: &TaskKey) -> Sealing<'_> {
        Sealing { vault: &self.vault, place: Place::new(key), nonces: Nonces::for_several() }
    }

    /// Opens stored bytes. If their key is not the first of the ring any more, they are added to what is to be sealed anew.
    pub(super) fn open(
        &self,
        key: &TaskKey,
        field: Field,
        stored: &Bytes,
        stale: &mut Vec<Reseal>,
    ) -> Answer<Bytes> {
        let mut place = Place::new(key);
        let opened = self.vault.open(place.of(field), stored)?;
        if opened.stale {
            let new = self.vault.seal(place.of(field), &opened.content)?.into();
            stale.push(Reseal { id: key.id.clone(), field, old: stored.clone(), new });
        }
        Ok(opened.content.into())
    }

    /// Opens a task of the release before, whose bytes were bound to its owner and its identifier.
    pub(super) fn open_orphan(&self, mut task: OrphanTask) -> Answer<OrphanTask> {
        let place = orphan_place(&task.owner, &task.id);
        let open = |field: Field, stored: &Bytes| -> Answer<Bytes> {
            Ok(self.vault.open(RecordLabel { kind: field.kind(), id: &place }, stored)?.content.into())
        };
        (task.view, task.work) = (open(Field::View, &task.view)?, open(Field::Work, &task.work)?);
        Ok(task)
    }

    /// Logs that a task cannot be opened, once.
    pub(super) fn log(&self, id: &TaskId, error: &StoreError) {
        let mut unopened = self.unopened.lock().unwrap_or_else(PoisonError::into_inner);
        if unopened.len() < NAMED && unopened.insert(id.clone()) {
            tracing::error!(%error, task = %id, "a task cannot be opened");
            if unopened.len() == NAMED {
                tracing::error!("{NAMED} tasks cannot be opened, and others are not named any more");
            }
        }
    }

    /// Logs that a task cannot be opened, and returns the error for who asked for it.
    pub(super) fn unreadable(&self, id: &TaskId, error: StoreError) -> TaskStoreError {
        self.log(id, &error);
        TaskStoreError::Unreadable(Box::new(error))
    }
}

/// Seals fields of one task.
pub(super) struct Sealing<'a> {
    vault: &'a Vault,
    place: Place,
    nonces: Nonces,
}

impl Sealing<'_> {
    pub(super) fn seal(&mut self, field: Field, content: &[u8]) -> Answer<Bytes> {
        Ok(self.vault.seal_with(&mut self.nonces, self.place.of(field), content)?.into())
    }

    pub(super) fn seal_if_any(&mut self, field: Field, content: Option<&Bytes>) -> Answer<Option<Bytes>> {
        content.map(|content| self.seal(field, content)).transpose()
    }

    pub(super) fn seal_pieces(&mut self, field: fn(u32) -> Field, pieces: &[Chunk]) -> Answer<Vec<Chunk>> {
        let seal = |piece: &Chunk| {
            Ok(Chunk { number: piece.number, bytes: self.seal(field(piece.number), &piece.bytes)? })
        };
        pieces.iter().map(seal).collect()
    }
}

fn orphan_place(owner: &TaskOwner, id: &TaskId) -> Vec<u8> {
    [&owner.as_bytes()[..], id.as_str().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use roundtrip::seal::{Key, Keyring};

    use super::*;

    fn key(service: u8, owner: u8, id: u8) -> TaskKey {
        let owner = TaskOwner::from_bytes([owner; Digest::LEN]);
        TaskKey { service: Digest::from_bytes([service; Digest::LEN]), owner, id: TaskId::new([id; 16]) }
    }

    /// K6: bytes of a task open in their place, and nowhere else.
    #[test]
    fn bytes_open_in_their_place_and_nowhere_else() {
        let seals = TaskSeals::new(Vault::new(Some(Keyring::new([Key::generate([1; 32])]).unwrap())));
        let own = key(1, 2, 3);
        let sealed = seals.sealing(&own).seal(Field::Journal(7), b"content").unwrap();
        let open = |key: &TaskKey, field| seals.open(key, field, &sealed, &mut Vec::new());
        assert_eq!(open(&own, Field::Journal(7)).unwrap(), "content");
        for other in [key(9, 2, 3), key(1, 9, 3), key(1, 2, 9)] {
            assert!(open(&other, Field::Journal(7)).is_err(), "{other:?}");
        }
        for field in
            [Field::Journal(8), Field::Parts(7), Field::View, Field::Work, Field::Result, Field::Call]
        {
            assert!(open(&own, field).is_err(), "{field:?}");
        }
    }

    /// K6: a task that cannot be opened is named in the log once, and the names that are kept are bounded.
    #[test]
    fn a_task_that_cannot_be_opened_is_named_once() {
        let seals = TaskSeals::new(Vault::new(None));
        for number in 0..2 * NAMED as u128 {
            seals.log(&TaskId::new(number.to_be_bytes()), &StoreError::Sealed);
        }
        assert_eq!(seals.unopened.lock().unwrap().len(), NAMED);
    }
}

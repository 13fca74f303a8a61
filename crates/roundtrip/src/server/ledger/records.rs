//! Expiring records of the ledger in memory. They have no clock and no lock: both are their owner's.
//!
//! There is no search for expired records. Every record is filed under the second in which it expires, and every claim
//! removes a few from the earliest seconds that have passed: more than it adds, so that records go as fast as they come,
//! and the cost of a claim depends neither on the live nor on the expired ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::{Digest, Timestamp};
use tokio::sync::watch;

use super::key::RoundKey;
use crate::budget::{Budget, Reservation};

/// Expired records that a claim removes.
const FEW: usize = 4;

type Id = [u8; RoundKey::LEN];

pub(super) struct Records {
    rounds: HashMap<Id, Round>,
    /// Ids of records, by the second in which they expire.
    ends: BTreeMap<Timestamp, Vec<Id>>,
    /// Places for records and bytes of replies, by owner.
    entries: Arc<Budget<Digest>>,
    bytes: Arc<Budget<Digest>>,
    /// Number of records that the operations so far have looked at.
    #[cfg(test)]
    touched: usize,
}

/// Most records, and most bytes of replies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capacity {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

struct Round {
    call: Digest,
    state: State,
    _place: Reservation<Digest>,
}

/// Channel to the requests that wait for a reply, if any. The owner wakes them after it has unlocked the records.
pub(super) type Waiting = Option<watch::Sender<Option<Bytes>>>;

enum State {
    Running(Waiting),
    Done { reply: Bytes, until: Timestamp, _bytes: Reservation<Digest> },
}

/// Result of a claim.
#[derive(Debug)]
pub(super) enum Found {
    /// No record: the claim is the caller's now.
    Free,
    /// Another request runs it. The reply comes here; if the channel closes without one, claim again.
    Running(watch::Receiver<Option<Bytes>>),
    Done(Bytes),
    OtherCall,
    /// There is no room, or none in the owner's share.
    Full,
}

impl Records {
    pub(super) fn new(most: Capacity) -> Self {
        Self {
            rounds: HashMap::new(),
            ends: BTreeMap::new(),
            entries: Budget::new(most.entries),
            bytes: Budget::new(most.bytes),
            #[cfg(test)]
            touched: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rounds.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.held()
    }

    pub(super) fn claim(&mut self, key: &RoundKey, now: Timestamp) -> Found {
        self.clear(key.owner(), now);
        self.touch();
        match self.rounds.get_mut(key.id()) {
            Some(round) if !round.is_over(now) => {
                if round.call != *key.call() {
                    return Found::OtherCall;
                }
                match &mut round.state {
                    State::Done { reply, .. } => Found::Done(reply.clone()),
                    State::Running(waiting) => {
                        Found::Running(waiting.get_or_insert_with(|| watch::channel(None).0).subscribe())
                    }
                }
            }
            _ if !self.bytes.has_room(key.owner(), 1) => Found::Full,
            _ => match self.entries.reserve(key.owner(), 1) {
                Some(place) => {
                    let round = Round { call: *key.call(), state: State::Running(None), _place: place };
                    self.rounds.insert(*key.id(), round);
                    Found::Free
                }
                None => Found::Full,
            },
        }
    }

    /// Records the reply of a running round, and returns the channel to the requests that wait for it.
    pub(super) fn record(&mut self, key: &RoundKey, reply: Bytes, until: Timestamp) -> Waiting {
        self.touch();
        let round = self.rounds.get_mut(key.id())?;
        // The round has had its effects: its reply is kept whether or not there is room for it.
        let bytes = self.bytes.charge(key.owner(), reply.len());
        let done = State::Done { reply, until, _bytes: bytes };
        let State::Running(waiting) = std::mem::replace(&mut round.state, done) else { return None };
        self.ends.entry(until).or_default().push(*key.id());
        waiting
    }

    /// Removes a round that has no reply. Requests that wait are told by dropping their channel.
    pub(super) fn release(&mut self, key: &RoundKey) -> Waiting {
        self.touch();
        match self.rounds.remove(key.id())?.state {
            State::Running(waiting) => waiting,
            State::Done { .. } => None,
        }
    }

    fn is_full(&self, owner: &Digest) -> bool {
        !(self.entries.has_room(owner, 1) && self.bytes.has_room(owner, 1))
    }

    /// Removes a few expired records; if there is no room, as many as make some.
    fn clear(&mut self, owner: &Digest, now: Timestamp) {
        let mut few = FEW;
        while few > 0 || self.is_full(owner) {
            let Some(mut earliest) = self.ends.first_entry() else { return };
            let until = *earliest.key();
            if until >= now {
                return;
            }
            let id = earliest.get_mut().pop();
            if earliest.get().is_empty() {
                earliest.remove();
            }
            // The round may have been claimed again since: then this is no longer its end.
            if let Some(id) = id
                && matches!(self.rounds.get(&id), Some(round) if round.ends(until))
            {
                self.rounds.remove(&id);
            }
            self.touch();
            few = few.saturating_sub(1);
        }
    }

    fn touch(&mut self) {
        #[cfg(test)]
        {
            self.touched += 1;
        }
    }
}

impl Round {
    fn is_over(&self, now: Timestamp) -> bool {
        matches!(self.state, State::Done { until, .. } if until < now)
    }

    fn ends(&self, at: Timestamp) -> bool {
        matches!(self.state, State::Done { until, .. } if until == at)
    }
}

#[cfg(test)]
mod tests;

//! What a ledger in memory holds. It has no clock and no lock: both are its owner's.
//!
//! Nothing is ever searched for what is over. Every record is filed under the second in which it ends, and every claim
//! takes a few from the earliest seconds that have passed: more than it adds, so that the shelf empties as fast as it
//! fills, and the cost of a claim depends neither on what is live nor on what has ended.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use roundtrip_core::seal::{Digest, Timestamp};
use tokio::sync::watch;

use super::key::RoundKey;

/// How many records that are over a claim takes away.
const FEW: usize = 4;

type Id = [u8; RoundKey::LEN];

pub(super) struct Shelf {
    rounds: HashMap<Id, Round>,
    /// What ends in which second.
    ends: BTreeMap<Timestamp, Vec<Id>>,
    bytes: usize,
    most: Most,
    /// How many records the operations so far have looked at.
    #[cfg(test)]
    touched: usize,
}

/// How much there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

struct Round {
    call: Digest,
    state: State,
}

/// Those who wait for a reply, if any. They are woken by whoever owns the shelf, when it is no longer locked.
pub(super) type Waiting = Option<watch::Sender<Option<Bytes>>>;

enum State {
    Running(Waiting),
    Done { reply: Bytes, until: Timestamp },
}

/// What a claim found.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing: it is the caller's now.
    Free,
    /// Somebody else runs it. The reply comes here; if the channel closes without one, claim again.
    Running(watch::Receiver<Option<Bytes>>),
    Done(Bytes),
    OtherCall,
    Full,
}

impl Shelf {
    pub(super) fn new(most: Most) -> Self {
        Self {
            rounds: HashMap::new(),
            ends: BTreeMap::new(),
            bytes: 0,
            most,
            #[cfg(test)]
            touched: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rounds.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn claim(&mut self, key: &RoundKey, now: Timestamp) -> Found {
        self.clear(now);
        self.touch();
        let full = self.is_full();
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
            _ if full => Found::Full,
            _ => {
                let round = Round { call: *key.call(), state: State::Running(None) };
                let over = self.rounds.insert(*key.id(), round);
                self.bytes -= over.map_or(0, |over| over.bytes());
                Found::Free
            }
        }
    }

    /// Files the reply of a round that runs. It is also to be handed to those who wait.
    pub(super) fn record(&mut self, key: &RoundKey, reply: Bytes, until: Timestamp) -> Waiting {
        self.touch();
        let round = self.rounds.get_mut(key.id())?;
        let size = reply.len();
        let done = State::Done { reply, until };
        let State::Running(waiting) = std::mem::replace(&mut round.state, done) else { return None };
        self.bytes += size;
        self.ends.entry(until).or_default().push(*key.id());
        waiting
    }

    /// Forgets a round that came to no reply. Those who wait are told by dropping their channel.
    pub(super) fn release(&mut self, key: &RoundKey) -> Waiting {
        self.touch();
        match self.rounds.remove(key.id())?.state {
            State::Running(waiting) => waiting,
            State::Done { .. } => None,
        }
    }

    fn is_full(&self) -> bool {
        self.rounds.len() >= self.most.entries || self.bytes >= self.most.bytes
    }

    /// Takes away a few records that are over; where there is no room, as many as make some.
    fn clear(&mut self, now: Timestamp) {
        let mut few = FEW;
        while few > 0 || self.is_full() {
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
                self.bytes -= self.rounds.remove(&id).map_or(0, |over| over.bytes());
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

    fn bytes(&self) -> usize {
        match &self.state {
            State::Done { reply, .. } => reply.len(),
            State::Running(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests;

//! [`Places`]: slots for tasks that a process runs, shared by accounts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use roundtrip_core::seal::Digest;

use crate::lock::lock;
use crate::task::Waiting;

/// Part of the slots that no single account may have the last of: an eighth.
const RESERVED: usize = 8;
/// Most slots that are shared at once: there may be as many as an author wants.
const AT_ONCE: usize = 256;

/// Slots for tasks that this process runs at once. A free slot goes to the account with the fewest tasks running here.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    all: usize,
    /// Only accounts that have some.
    accounts: HashMap<Digest, usize>,
    /// Accounts whose tasks were due at the last search, and got no slot.
    waiting: HashSet<Digest>,
    /// True unless the last search has found slots for all due tasks.
    is_wanted: bool,
}

impl Running {
    fn of(&self, account: &Digest) -> usize {
        self.accounts.get(account).copied().unwrap_or_default()
    }
}

/// Numbers of tasks to take, by kind and account.
pub(super) type Plan = Vec<(Waiting, usize)>;

/// Slots by account.
pub(super) type Slots = HashMap<Digest, Vec<Place>>;

/// Slot of a running task; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    account: Digest,
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, running: Mutex::default() })
    }

    /// Returns whether there are slots at all.
    pub(super) fn has_any(&self) -> bool {
        self.most > 0
    }

    /// Returns the most slots that one account may have.
    fn share(&self) -> usize {
        self.most - self.most / RESERVED
    }

    /// Notes the accounts whose tasks are due and have no slot.
    pub(super) fn set_waiting(&self, waiting: impl Iterator<Item = Digest>) {
        lock(&self.running).waiting = waiting.collect();
    }

    /// Notes that a search for due tasks begins. A slot that is freed from here on is wanted.
    pub(super) fn begin_search(&self) {
        lock(&self.running).is_wanted = true;
    }

    /// Notes that a search has seen all due tasks.
    pub(super) fn end_search(&self) {
        let mut running = lock(&self.running);
        running.is_wanted = !running.waiting.is_empty();
    }

    /// Returns whether tasks may be due that have no slot: a slot that was freed is worth a search. Otherwise every due task is
    /// announced, and a search for each task that ends would find nothing.
    pub(super) fn is_wanted(&self) -> bool {
        lock(&self.running).is_wanted
    }

    /// Returns a slot for a task that is just being created, unless another account waits for one that has fewer.
    pub(super) fn take_new(self: &Arc<Self>, account: Digest) -> Option<Place> {
        let is_behind = {
            let running = lock(&self.running);
            let own = running.of(&account);
            running.waiting.iter().any(|waiting| *waiting != account && running.of(waiting) < own)
        };
        if is_behind { None } else { self.take(account) }
    }

    /// Returns a slot for a task of an account, if one is free for it.
    pub(super) fn take(self: &Arc<Self>, account: Digest) -> Option<Place> {
        let mut running = lock(&self.running);
        let own = running.of(&account);
        if running.all >= self.most || own >= self.share() {
            return None;
        }
        running.all += 1;
        running.accounts.insert(account, own + 1);
        Some(Place { places: Arc::clone(self), account })
    }

    /// Shares the free slots among accounts whose tasks wait: one after the other goes to the account with the fewest tasks that
    /// run here or are planned to.
    pub(super) fn plan(&self, waiting: &[Waiting]) -> Plan {
        let running = lock(&self.running);
        let free = self.most.saturating_sub(running.all).min(AT_ONCE);
        let counts = waiting.iter().map(|waiting| (waiting.account, running.of(&waiting.account)));
        let mut counts: HashMap<Digest, usize> = counts.collect();
        // Of an account with several kinds, the kind with the fewest planned comes first.
        let mut planned = vec![0_usize; waiting.len()];
        let entries = waiting.iter().enumerate();
        let mut next: BinaryHeap<_> =
            entries.map(|(at, waiting)| Reverse((counts[&waiting.account], 0, at))).collect();
        for _ in 0..free {
            // An account with several kinds stands here several times: an entry with an old count is entered anew.
            while let Some(Reverse((count, _, at))) = next.pop() {
                let now = counts.get_mut(&waiting[at].account);
                let Some(now) = now.filter(|now| **now < self.share()) else { continue };
                let is_current = *now == count;
                planned[at] += usize::from(is_current);
                *now += usize::from(is_current);
                next.push(Reverse((*now, planned[at], at)));
                if is_current {
                    break;
                }
            }
        }
        waiting.iter().copied().zip(planned).filter(|(_, planned)| *planned > 0).collect()
    }

    /// Takes the slots that are planned. Returns the plan as far as there are any, and the slots by account.
    pub(super) fn reserve(self: &Arc<Self>, planned: &[(Waiting, usize)]) -> (Plan, Slots) {
        let mut slots = Slots::new();
        let reserved = planned.iter().filter_map(|(waiting, planned)| {
            let own: Vec<Place> = (0..*planned).map_while(|_| self.take(waiting.account)).collect();
            let number = own.len();
            slots.entry(waiting.account).or_default().extend(own);
            (number > 0).then_some((*waiting, number))
        });
        (reserved.collect(), slots)
    }

    /// Returns the number of free slots.
    pub(super) fn free(&self) -> usize {
        self.most.saturating_sub(lock(&self.running).all)
    }

    /// Returns the number of accounts among these that have no task running.
    pub(super) fn idle(&self, waiting: &[Waiting]) -> usize {
        let running = lock(&self.running);
        let idle = waiting.iter().map(|waiting| waiting.account);
        idle.filter(|account| !running.accounts.contains_key(account)).collect::<HashSet<_>>().len()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = lock(&self.places.running);
        running.all -= 1;
        if let Some(own) = running.accounts.get_mut(&self.account) {
            *own -= 1;
            if *own == 0 {
                running.accounts.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z3: slots for tasks that are being taken are nobody else's, and free again if no task came.
    #[test]
    fn planned_slots_are_kept() {
        let places = Places::new(8);
        let (reserved, slots) = places.reserve(&[(waiting(1), 3), (waiting(2), 9)]);
        assert_eq!(reserved, [(waiting(1), 3), (waiting(2), 5)]);
        assert!(places.take_new(waiting(3).account).is_none() && slots[&waiting(1).account].len() == 3);
        drop(slots);
        assert_eq!(places.free(), 8);
    }

    /// K7: a slot that is freed is worth a search while one is under way, and after it only if due tasks have found none.
    #[test]
    fn a_freed_slot_is_worth_a_search_if_tasks_wait() {
        let places = Places::new(8);
        places.begin_search();
        assert!(places.is_wanted(), "a task may be due that the search has passed");
        places.set_waiting(std::iter::empty());
        places.end_search();
        assert!(!places.is_wanted(), "all due tasks have slots");
        places.begin_search();
        places.set_waiting([waiting(1).account].into_iter());
        places.end_search();
        assert!(places.is_wanted(), "an account waits");
        places.begin_search();
        assert!(places.is_wanted(), "a search that was given up has seen nothing");
    }

    /// Z3: a new task does not take the slot that an account with fewer tasks waits for.
    #[test]
    fn new_tasks_do_not_overtake_accounts_that_wait() {
        let (places, account) = (Places::new(16), |byte| waiting(byte).account);
        let first = places.take_new(account(1)).expect("a slot");
        places.set_waiting([account(2)].into_iter());
        assert!(places.take_new(account(1)).is_none(), "the other has none");
        assert!(places.take_new(account(3)).is_some() && places.take(account(1)).is_some());
        places.set_waiting(std::iter::empty());
        assert!(places.take_new(account(1)).is_some());
        drop(first);
    }

    fn waiting(account: u8) -> Waiting {
        let digest = |byte| Digest::from_bytes([byte; Digest::LEN]);
        Waiting { kind: digest(0), account: digest(account) }
    }

    /// Z3: a free slot goes to the account with the fewest running tasks, and no account has the last eighth.
    #[test]
    fn slots_go_to_the_account_with_the_fewest() {
        let places = Places::new(16);
        let counts = |plan: Vec<(Waiting, usize)>| plan.into_iter().map(|(_, n)| n).collect::<Vec<_>>();
        assert_eq!(counts(places.plan(&[waiting(1)])), [14]);
        assert_eq!(counts(places.plan(&[waiting(1), waiting(2)])), [8, 8]);
        let held: Vec<_> = (0..14).filter_map(|_| places.take(waiting(1).account)).collect();
        assert!(held.len() == 14 && places.take(waiting(1).account).is_none() && places.free() == 2);
        assert_eq!(places.idle(&[waiting(1), waiting(2), waiting(2)]), 1);
        assert_eq!(counts(places.plan(&[waiting(1), waiting(2), waiting(3)])), [1, 1]);
        drop(held);
        let kinds = [waiting(1), Waiting { kind: waiting(9).account, ..waiting(1) }, waiting(2)];
        assert_eq!(counts(places.plan(&kinds)).iter().sum::<usize>(), 16);
        let of_1: usize =
            places.plan(&kinds).iter().filter(|(of, _)| of.account == kinds[0].account).map(|(_, n)| n).sum();
        assert_eq!(of_1, 8, "two kinds of one account are one account");
        assert_eq!(counts(places.plan(&kinds)), [4, 4, 8], "and neither of them hides the other");
        let many = Places::new(usize::MAX).plan(&[waiting(1)]);
        assert_eq!(counts(many), [AT_ONCE], "however many slots there are");
        let single = Places::new(1);
        assert!(single.take(waiting(1).account).is_some());
        assert!(Places::new(0).take(waiting(1).account).is_none());
    }
}

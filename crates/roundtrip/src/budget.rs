//! Budgets: bytes or places that all callers of a server share, and the share of each caller (Z3).
//!
//! One rule of shares serves every budget, and needs no setting: **one owner holds at most half of what the others
//! leave.** Alone it may have half of the budget, two that take what they can get end up with a third each, and a newcomer
//! finds room however much an owner before it has taken.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::lock;

/// A bounded amount, in bytes or in places, shared by owners.
#[derive(Debug)]
pub(crate) struct Budget<O> {
    total: usize,
    held: Mutex<Amounts<O>>,
}

#[derive(Debug)]
struct Amounts<O> {
    all: usize,
    /// Only owners that hold something.
    owners: HashMap<O, usize>,
}

impl<O: Clone + Eq + Hash> Amounts<O> {
    fn of(&self, owner: &O) -> usize {
        self.owners.get(owner).copied().unwrap_or_default()
    }

    fn add(&mut self, owner: &O, amount: usize) {
        if amount > 0 {
            self.all = self.all.saturating_add(amount);
            let own = self.owners.entry(owner.clone()).or_default();
            *own = own.saturating_add(amount);
        }
    }

    fn remove(&mut self, owner: &O, amount: usize) {
        self.all = self.all.saturating_sub(amount);
        if let Some(own) = self.owners.get_mut(owner) {
            *own = own.saturating_sub(amount);
            if *own == 0 {
                self.owners.remove(owner);
            }
        }
    }
}

impl<O: Clone + Eq + Hash> Budget<O> {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, held: Mutex::new(Amounts { all: 0, owners: HashMap::new() }) })
    }

    fn lock(&self) -> MutexGuard<'_, Amounts<O>> {
        lock(&self.held)
    }

    /// Returns the most that an owner may hold: half of what the others leave, rounded up so that a budget of one has
    /// one to give.
    fn share(&self, held: &Amounts<O>, owner: &O) -> usize {
        self.share_of(held.of(owner), held.all)
    }

    /// Returns the most that an owner of `own` may hold, where all together hold `all`.
    fn share_of(&self, own: usize, all: usize) -> usize {
        self.total.saturating_sub(all.saturating_sub(own)).div_ceil(2)
    }

    fn fits(&self, held: &Amounts<O>, owner: &O, amount: usize) -> bool {
        held.of(owner).saturating_add(amount) <= self.share(held, owner)
    }

    fn fits_among(&self, held: &Amounts<O>, owner: &O, amount: usize, all: usize) -> bool {
        let own = held.of(owner);
        own.saturating_add(amount) <= self.share_of(own, all)
    }

    /// Reserves an amount, if the owner's share has room for it.
    pub(crate) fn reserve(self: &Arc<Self>, owner: &O, amount: usize) -> Option<Reservation<O>> {
        let mut reservation = self.charge(owner, 0);
        reservation.grow(amount).then_some(reservation)
    }

    /// Reserves an amount of a total that is not all counted here: together, everyone holds `all` of it. What is not counted
    /// is nobody's, and left out of every share.
    pub(crate) fn reserve_among(
        self: &Arc<Self>,
        owner: &O,
        amount: usize,
        all: usize,
    ) -> Option<Reservation<O>> {
        let mut held = self.lock();
        if !self.fits_among(&held, owner, amount, all) {
            return None;
        }
        held.add(owner, amount);
        drop(held);
        Some(Reservation { budget: Arc::clone(self), owner: owner.clone(), amount })
    }

    /// Returns whether an amount could be reserved now with [`reserve_among`](Self::reserve_among).
    pub(crate) fn has_room_among(&self, owner: &O, amount: usize, all: usize) -> bool {
        self.fits_among(&self.lock(), owner, amount, all)
    }

    /// Counts an amount that is there already, whether or not there is room for it.
    pub(crate) fn charge(self: &Arc<Self>, owner: &O, amount: usize) -> Reservation<O> {
        self.lock().add(owner, amount);
        Reservation { budget: Arc::clone(self), owner: owner.clone(), amount }
    }

    /// Returns whether an amount could be reserved now.
    pub(crate) fn has_room(&self, owner: &O, amount: usize) -> bool {
        self.fits(&self.lock(), owner, amount)
    }

    /// Returns how much is held by all owners together.
    pub(crate) fn held(&self) -> usize {
        self.lock().all
    }
}

/// An amount held by an owner; given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation<O: Clone + Eq + Hash> {
    budget: Arc<Budget<O>>,
    owner: O,
    amount: usize,
}

impl<O: Clone + Eq + Hash> Reservation<O> {
    /// Reserves more, if the owner's share has room for it.
    pub(crate) fn grow(&mut self, amount: usize) -> bool {
        let mut held = self.budget.lock();
        let fits = self.budget.fits(&held, &self.owner, amount);
        if fits {
            held.add(&self.owner, amount);
            self.amount = self.amount.saturating_add(amount);
        }
        fits
    }

    /// Counts more that is there already, whether or not there is room for it.
    pub(crate) fn charge(&mut self, amount: usize) {
        self.budget.lock().add(&self.owner, amount);
        self.amount = self.amount.saturating_add(amount);
    }

    /// Gives a part back.
    pub(crate) fn shrink(&mut self, amount: usize) {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        self.budget.lock().remove(&self.owner, amount);
    }

    /// Returns whether the owner has more than half of its share. Then what can be dropped should be dropped, to leave
    /// room for the rest.
    #[cfg(any(test, feature = "legacy"))]
    pub(crate) fn is_tight(&self) -> bool {
        let held = self.budget.lock();
        held.of(&self.owner) > self.budget.share(&held, &self.owner) / 2
    }
}

impl<O: Clone + Eq + Hash> Drop for Reservation<O> {
    fn drop(&mut self) {
        self.shrink(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z3: one owner gets half, and however many have come before, the next one gets half of what is left.
    #[test]
    fn no_owner_takes_what_others_need() {
        let budget = Budget::new(1_000);
        let mut kept = Vec::new();
        for (name, share) in [("a", 500), ("b", 250), ("c", 125), ("d", 63)] {
            assert!(budget.reserve(&name, share + 1).is_none(), "{name}");
            kept.extend(budget.reserve(&name, share));
        }
        assert_eq!((kept.len(), budget.held()), (4, 938));
        kept.remove(0);
        assert_eq!(budget.held(), 438);
        assert!(budget.has_room(&"d", 250) && !budget.has_room(&"d", 251));
    }

    /// Z3: what is given back is there again, to the last byte, and owners without anything leave nothing behind.
    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = Budget::new(100);
        let mut held = budget.reserve(&"a", 10).expect("room");
        assert!(held.grow(40) && !held.grow(1) && held.is_tight());
        held.charge(1_000);
        assert_eq!(budget.held(), 1_050);
        assert!(!budget.has_room(&"b", 1), "what is there is counted, and new things have to wait");
        held.shrink(1_030);
        assert!(!held.is_tight());
        drop(held);
        assert!(budget.lock().owners.is_empty() && budget.held() == 0);
    }

    /// Z3: what is nobody's leaves less for everyone, and counts for no one's share.
    #[test]
    fn what_is_not_counted_is_nobodys() {
        let budget = Budget::new(100);
        let mut kept = Vec::new();
        while let Some(place) = budget.reserve_among(&"a", 1, 20 + kept.len()) {
            kept.push(place);
        }
        assert_eq!((kept.len(), budget.held()), (40, 40), "half of 80");
        assert!(budget.has_room_among(&"b", 20, 60) && !budget.has_room_among(&"b", 21, 60));
        assert!(budget.has_room_among(&"a", 10, 40), "the others have ended");
        drop(kept);
        assert!(budget.lock().owners.is_empty() && budget.held() == 0);
    }

    /// Z3: a budget of one place has one, whoever asks.
    #[test]
    fn the_last_place_can_be_had() {
        let budget = Budget::new(1);
        let place = budget.reserve(&"a", 1);
        assert!(place.is_some() && budget.reserve(&"b", 1).is_none());
        drop(place);
        assert!(budget.reserve(&"b", 1).is_some());
        assert!(Budget::new(0).reserve(&"b", 1).is_none());
        assert!(Budget::new(usize::MAX).reserve(&"b", usize::MAX / 2).is_some());
    }
}

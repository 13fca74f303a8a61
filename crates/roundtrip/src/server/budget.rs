//! Budgets: bytes or places that all callers of a server share, and the share of each caller (Z3).
//!
//! One rule of shares serves every budget, and needs no setting: **one owner holds at most half of what the others
//! leave.** Alone it may have half of the budget, two that take what they can get end up with a third each, and a newcomer
//! finds room however much an owner before it has taken.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use roundtrip_core::seal::Digest;

use super::peer::{Peer, Principal};
use crate::lock::lock;

/// The caller that a reservation counts against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Principal(Principal),
    /// The network of a caller without a principal.
    Network(IpAddr),
    /// All callers with neither a principal nor an address: they share as one.
    Unknown,
}

impl Owner {
    pub(crate) fn new(principal: Option<&Principal>, address: Option<IpAddr>) -> Self {
        match (principal, address) {
            (Some(principal), _) => Self::Principal(principal.clone()),
            (None, Some(address)) => Self::Network(network(address)),
            (None, None) => Self::Unknown,
        }
    }

    pub(crate) fn of(peer: &Peer) -> Self {
        Self::new(peer.principal.as_ref(), peer.address)
    }

    /// Returns the digest of the owner, which is the same on every instance.
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Self::Principal(principal) => Digest::of("owner", &[b"principal", principal.as_str().as_bytes()]),
            Self::Network(IpAddr::V4(address)) => Digest::of("owner", &[b"ipv4", &address.octets()]),
            Self::Network(IpAddr::V6(address)) => Digest::of("owner", &[b"ipv6", &address.octets()]),
            Self::Unknown => Digest::of("owner", &[b"unknown"]),
        }
    }
}

/// Returns the network that an address stands for: of IPv6, one customer commonly has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

/// A bounded amount, in bytes or in places, shared by owners.
#[derive(Debug)]
pub(crate) struct Budget<O = Owner> {
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
        let others = held.all.saturating_sub(held.of(owner));
        self.total.saturating_sub(others).div_ceil(2)
    }

    fn fits(&self, held: &Amounts<O>, owner: &O, amount: usize) -> bool {
        held.of(owner).saturating_add(amount) <= self.share(held, owner)
    }

    /// Reserves an amount, if the owner's share has room for it.
    pub(crate) fn reserve(self: &Arc<Self>, owner: &O, amount: usize) -> Option<Reservation<O>> {
        let mut reservation = self.charge(owner, 0);
        reservation.grow(amount).then_some(reservation)
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
pub(crate) struct Reservation<O: Clone + Eq + Hash = Owner> {
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

    fn named(name: &str) -> Owner {
        Owner::Principal(Principal::new(name))
    }

    /// Z3: one owner gets half, and however many have come before, the next one gets half of what is left.
    #[test]
    fn no_owner_takes_what_others_need() {
        let budget = Budget::new(1_000);
        let mut kept = Vec::new();
        for (name, share) in [("a", 500), ("b", 250), ("c", 125), ("d", 63)] {
            assert!(budget.reserve(&named(name), share + 1).is_none(), "{name}");
            kept.extend(budget.reserve(&named(name), share));
        }
        assert_eq!((kept.len(), budget.held()), (4, 938));
        kept.remove(0);
        assert_eq!(budget.held(), 438);
        assert!(budget.has_room(&named("d"), 250) && !budget.has_room(&named("d"), 251));
    }

    /// Z3: what is given back is there again, to the last byte, and owners without anything leave nothing behind.
    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = Budget::new(100);
        let mut held = budget.reserve(&named("a"), 10).expect("room");
        assert!(held.grow(40) && !held.grow(1) && held.is_tight());
        held.charge(1_000);
        assert_eq!(budget.held(), 1_050);
        assert!(!budget.has_room(&named("b"), 1), "what is there is counted, and new things have to wait");
        held.shrink(1_030);
        assert!(!held.is_tight());
        drop(held);
        assert!(budget.lock().owners.is_empty() && budget.held() == 0);
    }

    /// Z3: a budget of one place has one, whoever asks.
    #[test]
    fn the_last_place_can_be_had() {
        let budget = Budget::new(1);
        let place = budget.reserve(&Owner::Unknown, 1);
        assert!(place.is_some() && budget.reserve(&named("b"), 1).is_none());
        drop(place);
        assert!(budget.reserve(&named("b"), 1).is_some());
        assert!(Budget::new(0).reserve(&named("b"), 1).is_none());
        assert!(Budget::new(usize::MAX).reserve(&named("b"), usize::MAX / 2).is_some());
    }

    /// Z3: a caller without a principal is known by its address, of IPv6 by the first half of it.
    #[test]
    fn callers_without_a_principal_share_by_network() {
        let owner = |address: &str| Owner::new(None, Some(address.parse().expect("an address")));
        assert_eq!(owner("2001:db8:1:2:3:4:5:6"), owner("2001:db8:1:2::1"));
        assert_ne!(owner("2001:db8:1:2::1"), owner("2001:db8:1:3::1"));
        assert_eq!(owner("::ffff:192.0.2.1"), owner("192.0.2.1"));
        assert_ne!(owner("192.0.2.1"), owner("192.0.2.2"));
        let address = "192.0.2.1".parse().ok();
        assert_eq!(Owner::new(Some(&Principal::new("ada")), address), named("ada"));
        assert_ne!(named("ada").digest(), owner("192.0.2.1").digest());
        assert_ne!(Owner::Unknown.digest(), owner("192.0.2.1").digest());
    }
}

//! Tasks of a service, of one account and of one owner.

use std::time::Duration;

use bytes::Bytes;
use roundtrip::Keyring;
use roundtrip::seal::Digest;
use roundtrip::task::{
    Due, Millis, NewTask, TakeRequest, TakenTask, TaskChange, TaskId, TaskKey, TaskOwner, TaskStore, Waiting,
};

use super::Site;

/// Length of a lease that does not end during a test.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn ring(keys: &[u8]) -> Keyring {
    let keys: Vec<String> = keys.iter().map(|key| format!("{key:02x}").repeat(32)).collect();
    keys.join("\n").parse().expect("keys")
}

pub(crate) async fn sealed<S: Site>(site: &S, keys: &[u8]) -> S::Store {
    site.open(|opening| opening.sealed_by(ring(keys))).await.expect("a store")
}

pub(crate) fn shop() -> Digest {
    Digest::of("service", &[b"shop"])
}

pub(crate) fn ada() -> TaskOwner {
    TaskOwner::new(Some("ada"))
}

pub(crate) fn id(number: u8) -> TaskId {
    TaskId::new([number; 16])
}

pub(crate) fn key(number: u8) -> TaskKey {
    TaskKey { service: shop(), owner: ada(), id: id(number) }
}

pub(crate) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; Digest::LEN])
}

/// Ada's account, with tasks of a kind.
pub(crate) fn pair(kind: u8) -> Waiting {
    Waiting { kind: digest(kind), account: Digest::of("account", &[b"ada"]) }
}

/// A task that is due, and has secrets.
pub(crate) fn task(number: u8) -> NewTask {
    NewTask {
        key: key(number),
        account: pair(1).account,
        kind: pair(1).kind,
        lease: None,
        expires: None,
        call: Bytes::from_static(b"the secret call"),
        view: Bytes::from_static(b"the secret view"),
        work: Bytes::from_static(b"the secret work"),
        journal: Some(Bytes::from_static(b"the secret piece")),
    }
}

/// A change of a task of this version that changes nothing.
pub(crate) fn change(number: u8, version: u64) -> TaskChange {
    let NewTask { key, view, work, expires, .. } = task(number);
    TaskChange {
        key,
        version,
        due: Due::AsBefore,
        is_live: true,
        expires,
        view,
        work,
        result: None,
        journal: Vec::new(),
        replaces_journal: false,
        parts: Vec::new(),
    }
}

/// Takes tasks of kind 1.
pub(crate) async fn take(store: &impl TaskStore, most: usize, lease: Duration) -> Vec<TakenTask> {
    let (service, wanted) = (shop(), [(pair(1), most)]);
    let request = TakeRequest { service: &service, wanted: &wanted, except: &[], lease };
    store.take(request, Millis(1)).await.expect("tasks")
}

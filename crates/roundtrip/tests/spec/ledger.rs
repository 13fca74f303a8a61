//! The ledger: a round runs at most once, and its repeat gets the recorded reply.

use std::task::{Context, Waker};

use roundtrip::MemoryLedger;
use roundtrip::server::InFlight;

mod hang_ups;
#[macro_use]
mod repeats;
mod shop;
mod stores;

use shop::*;

/// A ledger in memory, as every other.
#[derive(Default)]
struct InMemory(MemoryLedger);

impl Store for InMemory {
    type Ledger = MemoryLedger;

    async fn instance(&self) -> MemoryLedger {
        self.0.clone()
    }

    async fn bounded(&self, records: usize, bytes: usize) -> MemoryLedger {
        MemoryLedger::bounded(records, bytes)
    }
}

/// The same, for a server with tasks whose client can have them.
#[derive(Default)]
struct WithTasks(InMemory);

impl Store for WithTasks {
    type Ledger = MemoryLedger;

    async fn instance(&self) -> MemoryLedger {
        self.0.instance().await
    }

    async fn bounded(&self, records: usize, bytes: usize) -> MemoryLedger {
        self.0.bounded(records, bytes).await
    }

    fn shop(&self) -> Shop {
        Shop { has_tasks: true, ..Shop::default() }
    }
}

impl Counted for MemoryLedger {
    async fn count(&self) -> usize {
        self.len()
    }
}

on_every_store!(memory, InMemory::default());
on_every_store!(memory_with_tasks, WithTasks::default());

fn poll(call: &mut InFlight) {
    assert!(call.poll_event(&mut Context::from_waker(Waker::noop())).is_pending());
}

//! [`PartSender`]: the stored parts of a task's result, for a request that wants them.

use std::future::poll_fn;
use std::sync::Arc;

use roundtrip_core::wire::{PartsFrom, RequestId};

use crate::server::notify::outbox::Outbox;
use crate::server::peer::Listens;
use crate::task::{Chunk, TaskKey, TaskStoreError, TaskStoreHandle, split_parts};

/// Most pieces that are read at once.
const PIECES: usize = 16;

/// Sender of the stored parts of a task's result, before the reply to a request.
pub(crate) struct PartSender {
    outbox: Arc<Outbox>,
    request: RequestId,
    next: u32,
}

impl PartSender {
    /// Creates a sender of the parts from a number on.
    pub(crate) fn new(request: &RequestId, PartsFrom { from }: PartsFrom, listens: Listens) -> Self {
        let outbox = Arc::new(Outbox::numbered_from(listens, from));
        Self { outbox, request: request.clone(), next: from }
    }

    /// Returns the queue that the parts go through.
    pub(crate) fn outbox(&self) -> Arc<Outbox> {
        Arc::clone(&self.outbox)
    }

    /// Sends the stored parts of a task that have not been sent yet, as fast as the client reads them.
    pub(super) async fn send(
        &mut self,
        store: &TaskStoreHandle,
        key: &TaskKey,
    ) -> Result<(), TaskStoreError> {
        loop {
            let pieces = store.0.parts(key, self.next, PIECES).await?;
            let before = self.next;
            for Chunk { number, bytes } in pieces {
                for part in split_parts(number, &bytes, self.next) {
                    self.outbox.part(&self.request, &part);
                    self.next = self.next.saturating_add(1);
                    poll_fn(|cx| self.outbox.poll_room(cx)).await;
                }
            }
            if self.next == before {
                return Ok(());
            }
        }
    }
}

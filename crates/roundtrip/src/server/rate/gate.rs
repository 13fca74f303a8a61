//! [`RateGate`]: takes requests out of the buckets of their callers.

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::{ClientRequest, ErrorObject};

use super::limit::RateLimit;
use super::memory::MemoryRates;
use super::shared::cannot_tell;
use super::store::{Bucket, Taken};
use crate::server::budget::Owner;
use crate::server::peer::Peer;

/// Place that limits are given to: the server, or an offer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
}

impl Place<'_> {
    pub(crate) const SERVER: Place<'static> = Place { kind: "server", name: "" };

    fn is_server(self) -> bool {
        self.kind == Place::SERVER.kind
    }

    /// Returns whether a request counts here. Completions count at the server only: a prompt that may be got three times an
    /// hour can still be typed (completion, "Security Considerations").
    fn counts(self, request: &ClientRequest<'_>) -> bool {
        match request {
            ClientRequest::CallTool(_) | ClientRequest::GetPrompt(_) | ClientRequest::ReadResource(_) => true,
            ClientRequest::Complete(_) => self.is_server(),
            _ => false,
        }
    }
}

/// Rate limits of a server.
#[derive(Debug)]
pub(crate) struct RateGate {
    /// Name that tells the buckets of services apart that share a store.
    audience: String,
    memory: MemoryRates,
    /// False in tests that repeat rounds on purpose.
    is_on: bool,
}

impl RateGate {
    pub(crate) fn new(audience: &str, is_on: bool) -> Self {
        Self { audience: audience.to_owned(), memory: MemoryRates::new(), is_on }
    }

    /// Returns whether a request counts under the limits of a place. What a transport enters again by itself was counted as a
    /// request.
    fn counts(
        &self,
        limits: &[RateLimit],
        place: Place<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> bool {
        let entered = || peer.reentry.as_ref().is_some_and(|reentry| reentry.has_entered());
        !limits.is_empty() && place.counts(request) && self.is_on && !entered()
    }

    /// Returns whether a store has to be waited for.
    #[inline]
    pub(crate) fn waits(
        &self,
        limits: &[RateLimit],
        place: Place<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> bool {
        limits.iter().any(|limit| limit.shared.is_some()) && self.counts(limits, place, request, peer)
    }

    /// Takes a request out of the buckets of limits that need not be waited for.
    ///
    /// # Errors
    /// The error to answer, if one of them is empty.
    #[inline]
    pub(crate) fn take_now(
        &self,
        limits: &[RateLimit],
        place: Place<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> Result<(), ErrorObject> {
        if !self.counts(limits, place, request, peer) {
            return Ok(());
        }
        self.buckets(limits, place, peer).try_for_each(|(_, bucket)| passed(self.memory.take_now(&bucket)))
    }

    /// Takes a request out of the buckets of limits, and waits for their stores.
    ///
    /// # Errors
    /// The error to answer, if one of them is empty.
    pub(crate) async fn take(
        &self,
        limits: &[RateLimit],
        place: Place<'_>,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> Result<(), ErrorObject> {
        if !self.counts(limits, place, request, peer) {
            return Ok(());
        }
        for (limit, bucket) in self.buckets(limits, place, peer) {
            let taken = match &limit.shared {
                None => self.memory.take_now(&bucket),
                Some(shared) => match shared.take(&bucket).await {
                    None if limit.strict => return Err(cannot_tell()),
                    taken => taken.unwrap_or(Taken::Passed),
                },
            };
            passed(taken)?;
        }
        Ok(())
    }

    /// Returns the caller's buckets. Limits of one place are told apart by their order and what they say: after a change of one,
    /// its buckets are new.
    fn buckets<'a>(
        &'a self,
        limits: &'a [RateLimit],
        place: Place<'a>,
        peer: &Peer,
    ) -> impl Iterator<Item = (&'a RateLimit, Bucket)> + use<'a> {
        let owner = Owner::of(peer).digest();
        (0_u64..).zip(limits).map(move |(index, limit)| {
            let parts: [&[u8]; 7] = [
                self.audience.as_bytes(),
                place.kind.as_bytes(),
                place.name.as_bytes(),
                &index.to_le_bytes(),
                &limit.interval.as_nanos().to_le_bytes(),
                &limit.burst.to_le_bytes(),
                owner.as_bytes(),
            ];
            (limit, Bucket::new(Digest::of("rate limit", &parts), limit.interval, limit.burst))
        })
    }
}

fn passed(taken: Taken) -> Result<(), ErrorObject> {
    match taken {
        Taken::Passed => Ok(()),
        Taken::Refused { retry_after } => Err(ErrorObject::rate_limited(retry_after)),
    }
}

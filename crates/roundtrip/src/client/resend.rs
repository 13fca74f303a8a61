//! Policy for a request that failed with its connection.

use roundtrip_core::error::Sent;

/// Key in `_meta` of a request's name: the caller's key, a dot, and the number of the request in its flow
/// (`order-17.2`). A request that is sent again has the same name; no other request of the flow has it.
pub(crate) use roundtrip_core::wire::meta::key::IDEMPOTENCY_KEY;

/// Policy for sending a request again after the connection broke. A call that runs twice may book twice, so the default
/// is to do it only where nothing was sent.
///
/// However it is set, a request is sent again at most twice, and one that timed out, or that the server answered or
/// turned away, never is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resend {
    /// Never.
    Never,
    /// Only if the request cannot have reached the server, because no connection could be made.
    #[default]
    Unsent,
    /// Also if it may have, and it hands back a `requestState`: the server keeps a ledger, so that it knows a round that
    /// comes twice by its state. The first request of a call has no state to be known by.
    Ledger,
    /// Always: running twice does no harm, or the server knows the request by its
    /// [idempotency key](super::Call::idempotency_key).
    Always,
}

impl Resend {
    pub(crate) fn allows(self, sent: Sent, has_state: bool) -> bool {
        match (self, sent) {
            (Self::Never, _) => false,
            (_, Sent::No) | (Self::Always, Sent::Maybe) => true,
            (Self::Ledger, Sent::Maybe) => has_state,
            (Self::Unsent, Sent::Maybe) => false,
        }
    }
}

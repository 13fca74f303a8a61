//! Client: calls as builders that are awaited, the cache between them, and the [`Transport`] trait.
//!
//! This module knows nothing of sockets, processes or servers. A [`Transport`] sends one request and returns the
//! stream of its messages; everything else (ids, versions, timeouts, pages, caching, rounds) happens here.

mod builder;
mod by_hand;
mod cache;
mod call;
mod handlers;
mod in_flight;
mod limits;
mod list;
mod listen;
mod methods;
mod options;
mod page;
mod questions;
mod request;
mod resend;
mod rounds;
mod send;
mod tools;
mod transport;
mod unfold;
mod weak_client;

pub use builder::Client;
pub use by_hand::{OneRound, Turn};
pub use call::Call;
pub use limits::ClientLimits;
pub use list::{List, Listing, Pages};
pub use listen::{Change, Changes, Listen};
pub use questions::{
    FormAnswer, FormRequest, IntoAnswer, IntoRoot, Origin, RootsRequest, SampleRequest, UrlAnswer, UrlRequest,
};
pub use resend::Resend;
pub use roundtrip_core::error::{
    ApiMisuse, Error, GaveUp, HttpRefusal, PeerIncompatible, PeerMisbehaved, Sent, ServerRejection,
    Unreachable,
};
pub use roundtrip_core::exchange::{Answer, Kind, Misfit, Pending, PendingQuestion, RequestState};
pub use transport::{BoxFuture, Incoming, Outgoing, Transport};

pub(crate) use in_flight::nameless_error;
pub(crate) use page::check_url;
pub(crate) use unfold::unfold;
pub(crate) use weak_client::{Responder, WeakClient};

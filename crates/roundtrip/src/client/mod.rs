//! Client: calls as builders that are awaited, the cache between them, and the [`Transport`] trait.
//!
//! This module knows nothing of sockets, processes or servers. A [`Transport`] sends one request and returns the
//! stream of its messages; everything else (ids, versions, timeouts, pages, caching, rounds) happens here.

mod builder;
mod by_hand;
mod cache;
mod call;
#[cfg(feature = "legacy")]
mod caller;
mod change;
mod closing;
mod flow;
mod handlers;
mod in_flight;
mod limits;
mod link;
mod list;
mod list_bounds;
mod listen;
mod memory;
mod methods;
#[cfg(not(feature = "legacy"))]
mod modern_client;
mod on_question;
mod options;
mod page;
mod part_numbers;
mod probe;
mod questions;
mod request;
mod request_time;
mod resend;
mod rounds;
mod send;
mod streamed_call;
mod task;
mod task_watch;
mod tools;
mod transport;
mod waiting;

pub use builder::Client;
pub use by_hand::{OneRound, Turn};
pub use call::Call;
pub use change::Change;
pub use limits::ClientLimits;
pub use list::{List, Listing, Pages};
pub use listen::{Changes, Listen};
pub use questions::{
    FormAnswer, FormRequest, IntoAnswer, IntoRoot, Origin, RootsRequest, SampleRequest, UrlAnswer, UrlRequest,
};
pub use resend::Resend;
pub use rounds::Started;
pub use roundtrip_core::error::{
    ApiMisuse, Error, GaveUp, HttpRefusal, PeerIncompatible, PeerMisbehaved, RequestName, Sent,
    ServerRejection, TaskError, Unreachable,
};
pub use roundtrip_core::exchange::{
    Answer, Kind, Misfit, Pending, PendingQuestion, RequestState, Task, TaskDialect,
};
pub use streamed_call::StreamedCall;
pub use task::TaskHandle;
pub use transport::{BoxFuture, Incoming, Outgoing, Transport};

#[cfg(feature = "oauth")]
pub(crate) use closing::until;
pub(crate) use in_flight::nameless_error;
pub(crate) use link::{Failure, Link, Refusal};
#[cfg(not(feature = "legacy"))]
pub(crate) use modern_client::ModernClient;
/// For sessions of the handshake eras, which wrap a [`Link`].
#[cfg(feature = "legacy")]
pub(crate) use {
    caller::Caller,
    closing::{Closed, Closing, until_closed},
    handlers::{Handlers, ask},
    list_bounds::ListBounds,
    page::check_url,
    probe::{Probed, answer, discover, probe, unsent},
};

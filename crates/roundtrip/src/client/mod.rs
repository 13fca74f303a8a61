//! The client: calls as builders that are awaited, what it remembers between them, and the seam to transports.
//!
//! This room knows nothing of sockets, processes or servers. A [`Transport`] takes one message and gives back the
//! messages that come of it; everything else (ids, versions, timeouts, pages, caching) happens here.

mod builder;
mod cache;
mod call;
mod exchange;
mod leg;
mod list;
mod listen;
mod methods;
mod options;
mod request;
mod tools;
mod transport;

pub use builder::Client;
pub use call::Call;
pub use list::{List, Listing, Pages};
pub use listen::{Change, Changes, Listen};
pub use roundtrip_core::error::{Error, Sent};
pub use transport::{BoxFuture, Incoming, Outgoing, Transport};

pub(crate) use leg::nameless_error;

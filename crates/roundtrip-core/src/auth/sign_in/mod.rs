//! Sign-in as a state machine: from a refused request to tokens, without a socket, a browser or a clock.
//!
//! A [`SignIn`] has a request to send; the response to it makes a [`Step`]: the next request, a browser to open, a code to
//! show, or the [`Grant`](super::Grant). Between two steps a person may take all day: a [`Pending`] serialises, and
//! any process finishes it with the callback URL.
//!
//! ```text
//! begin -> resource metadata -> issuer's metadata -> registration -> Browse(Pending) -> resume -> token -> Done(Grant)
//!                                                 |-> device code -> ShowCode(DevicePending) -> poll --^
//!                                                 |-> Assert(AssertionRequest) -> assert -------------^
//!                                                 |-> client credentials, identity -------------------^
//! refresh ------------------------------------------------------------------------------------> token
//! ```

mod authorize;
mod client;
mod device;
mod discovery;
mod http;
mod identity;
mod machine;
mod need;
mod pending;
mod search;
mod settings;
mod token;

pub use self::http::{AuthRequest, AuthResponse};
pub use device::DevicePending;
pub use identity::AssertionRequest;
pub use machine::{SignIn, Step};
pub use need::Need;
pub use pending::{Answered, Pending};
pub use settings::{Choices, IdentityProvider, RegisteredClient, ScopeChoice, Settings, TrustedIssuer};

//! Sealing of a flow's state into a token (`requestState`), and opening of it.
//!
//! Between two rounds the state of a call travels through the client, which is not trusted: `requestState` is
//! hostile until it has been opened (mrtr, server 4). A token is therefore encrypted and authenticated by a
//! [`Keyring`], and inside it the [`Claims`] say which flow and round it belongs to, how long it lives, and
//! which call it may be presented with ([`Binding`]; mrtr, server 5). The reason a token is
//! refused goes to the log ([`Rejected`]); the client is told one sentence, whatever the reason.
//!
//! ```
//! use roundtrip_core::seal::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (secret, flow, nonce) = ([7; 32], [1; 16], [2; 24]); // random bytes, in earnest
//! let keyring = Keyring::new([Key::generate(secret)])?;
//! let limits = TokenLimits::default();
//! let binding = Binding::new(BindingParts {
//!     audience: "bookings",
//!     method: "tools/call",
//!     target: "book_table",
//!     arguments: digest_arguments(Some(r#"{ "restaurant": "Nopa" }"#))?,
//!     principal: Some("alice"),
//! });
//!
//! let now = Timestamp::from_unix(1_785_000_000);
//! let claims = Claims::begin(FlowId::new(flow), binding, now, DEFAULT_TTL);
//! let token = keyring.seal(&claims, b"the journal", nonce, &limits)?;
//!
//! let opened = keyring.open(&token, &binding, now, &limits)?;
//! assert_eq!(opened.claims, claims);
//! assert_eq!(opened.payload, b"the journal");
//! # Ok(()) }
//! ```
//!
//! The bytes of a token, before base64url without padding:
//!
//! | part | bytes | |
//! |---|---|---|
//! | suite | 1 | authenticated; names the [`Suite`], or a codec |
//! | key id | 4 | authenticated; says which key of the ring opens it |
//! | nonce | 24 | random, so that a fleet may share a key without counting |
//! | claims, payload | 94 or more | encrypted and authenticated |
//! | tag | 16 | |
//!
//! The claims begin with the [`TokenVersion`], on which their encoding and that of the payload depend.
//! A [`Codec`] replaces the last four rows; the claims stay inside, in the same encoding.
//! This module reads no clock and draws no random numbers: both are passed in.

mod arguments;
mod binding;
mod canonical;
mod claims;
mod codec;
pub mod dangerous;
mod digest;
mod inspect;
mod key;
mod keyring;
mod limits;
mod record;
mod rejected;
mod sealer;
mod suite;
mod timestamp;
mod token;
mod version;

pub use arguments::{ArgumentsError, digest_arguments, digest_text_arguments};
pub use binding::{Binding, BindingParts};
pub use claims::{Claims, FlowId};
pub use codec::{BoxFuture, Codec, CodecError};
pub use digest::Digest;
pub use inspect::{Inspected, inspect};
pub use key::{Key, KeyError, KeyId};
pub use keyring::{Keyring, KeyringError};
pub use limits::{CLOCK_SKEW, DEFAULT_TTL, TokenLimits};
pub use record::{OpenedRecord, RecordError, RecordLabel};
pub use rejected::{Reason, Rejected, SealError};
pub use sealer::Sealer;
pub use suite::Suite;
pub use timestamp::Timestamp;
pub use token::Opened;
pub use version::TokenVersion;

//! Test harness for handlers that ask: scripted answers, and a replay that injects faults.
//!
//! A handler that asks runs again from the top in every round, and a round whose reply was lost runs again as a
//! whole. [`replay`] does all of that on purpose: it drops the handler at every await, loses every reply, repeats every
//! round, and fails when an effect happened twice outside [`once`](crate::Ask::once), when a key or a question is not the
//! same in every run, when the handler uses its keys in another order, when a repeated round gives another reply,
//! or when the parts of a result that were sent are not the result.
//! [`play`] plays the script without faults. Both fail when a question has no scripted answer, or an answer was not asked
//! for.
//!
//! ```
//! use roundtrip::testing::{self, Effects};
//! use roundtrip::{Ask, Form, Server, State, Tool, ToolError};
//! use serde_json::json;
//!
//! #[derive(Form)]
//! struct Approval { approve: bool }
//!
//! async fn pay(ask: Ask, State(bank): State<Effects>) -> Result<String, ToolError> {
//!     let Approval { approve } = ask.form("approval", "Pay 100?").await?;
//!     if !approve {
//!         return Ok("not paid".into());
//!     }
//!     ask.remember("pay", async || bank.happened("payment")).await?;
//!     Ok("paid".into())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let effects = Effects::new();
//! let server = Server::new("shop", "1.0.0").tool(Tool::new("pay", pay)).state(effects.clone());
//! let result = testing::replay(server)
//!     .tool("pay", json!({}))
//!     .accept("approval", json!({ "approve": true }))
//!     .effects(&effects)
//!     .await?;
//! assert_eq!(result["content"][0]["text"], "paid");
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `authorize`, `Issuer` is an authorization server in the process, for tests of servers that want tokens.
//!
//! [`stores`] has the contracts of ledgers, and of stores of tasks, of rate limits and of tokens, for one of your own.

#[cfg(feature = "authorize")]
mod authorize;
mod difference;
mod effects;
mod error;
mod flow;
#[cfg(feature = "authorize")]
mod issuer;
mod parts;
mod replay;
mod script;
pub mod stores;

pub use effects::Effects;
pub use error::ReplayError;
#[cfg(feature = "authorize")]
pub use issuer::{Issuer, IssuerToken};
pub use parts::SentParts;
pub use replay::{Replay, play, replay};

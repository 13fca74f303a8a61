//! A Model Context Protocol SDK in which a tool may stop and ask, and any server instance carries on with the answer:
//! servers and clients for revision 2026-07-28 and, with the same handlers, for the handshake revisions before it.
//!
//! # A server
//!
//! A handler is an ordinary async function. Its parameter types say what it needs, in any order, and its return type
//! says what it answers; the tool's input and output schemas come from these types.
//!
//! ```
//! use roundtrip::{Args, Json, Server, State, Tool, ToolError};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Divide { a: f64, b: f64 }
//!
//! async fn divide(Args(Divide { a, b }): Args<Divide>) -> Result<Json<f64>, ToolError> {
//!     if b == 0.0 {
//!         return Err(ToolError::new("b must not be zero"));
//!     }
//!     Ok(Json(a / b))
//! }
//!
//! async fn motto(State(motto): State<String>) -> String {
//!     motto
//! }
//!
//! let server = Server::new("calculator", "1.0.0")
//!     .tool(Tool::new("divide", divide).description("Divide two numbers"))
//!     .tool(Tool::new("motto", motto))
//!     .state("to divide is to conquer".to_owned());
//! # server.build().unwrap();
//! ```
//!
//! # A tool that asks
//!
//! A handler that takes an [`Ask`] can await an answer anywhere. The reply carries its questions (`inputRequests`) and
//! its sealed state (`requestState`); the instance that receives the answers (`inputResponses`) runs it again with them.
//!
//! ```
//! use roundtrip::{Ask, Form, Server, Tool, ToolError};
//!
//! #[derive(Form)]
//! struct Party {
//!     /// How many people?
//!     #[form(min = 1, max = 12)]
//!     people: u8,
//! }
//!
//! async fn book(ask: Ask) -> Result<String, ToolError> {
//!     let party: Party = ask.form("party", "How many people?").await?;
//!     Ok(format!("a table for {}", party.people))
//! }
//!
//! let server = Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book));
//! # server.build().unwrap();
//! ```
//!
//! Serve it with [`Server::serve_http`] or [`Server::serve_stdio`], or mount [`Server::into_http`] into axum or any other
//! tower stack.
//!
//! # A client
//!
//! ```
//! # #[cfg(feature = "client")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use roundtrip::{Client, Server, Tool};
//!
//! let server = Server::new("greeter", "1.0.0").tool(Tool::new("hello", async || "hello"));
//! let client = Client::in_process(server)?;             // or Client::http(url)?, or Client::stdio(command)
//! let result = client.call_tool("hello", serde_json::json!({})).await?;
//! assert_eq!(result.content[0].as_text(), Some("hello"));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "client"))]
//! # fn main() {}
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`server`] | tools, prompts and resources, handlers and their parameters |
//! | `authorize` | access tokens of callers, and their scopes (feature `authorize`, on by default) |
//! | `client` | calls as builders, and the `Transport` trait (feature `client`, on by default) |
//! | `oauth` | sign-in of clients (feature `oauth`, on by default) |
//! | [`http`], [`stdio`] | the edges: bytes to messages and back |
//! | [`task`] | calls that go on after their reply: their lifecycle, and the contract of their store |
//! | `legacy` | clients and servers of the handshake eras (feature `legacy`, on by default) |
//! | `telemetry` | spans and metrics (feature `opentelemetry`) |
//! | [`testing`] | scripted answers, a replay that injects faults, contracts of stores |
//! | [`form`], [`seal`] | forms and their fields; the sealing of `requestState` |
//! | [`wire`] | the specification's nouns in the specification's spelling |
//!
//! # Features
//!
//! The first six are on by default.
//!
//! | feature | contents |
//! |---|---|
//! | `authorize` | servers check access tokens: `Authorize` |
//! | `client` | the client: HTTP with TLS, child processes, in process; response cache |
//! | `http2` | clients speak HTTP/2 with servers that have it |
//! | `legacy` | the handshake eras, revisions up to 2025-11-25, on both sides |
//! | `validation` | arguments and results are validated against JSON Schemas; without it, parsing alone enforces arguments, a tool whose schema says more is a [`SetupError`](server::SetupError), and clients do not check results against output schemas |
//! | `oauth` | clients that sign in: discovery, grants, stores of tokens |
//! | `opentelemetry` | spans and metrics by the names of OpenTelemetry's conventions for MCP, on both sides (`telemetry`) |
//! | `anyhow` | errors of the protocol are found inside an `anyhow::Error` |
//! | `chrono`, `jiff`, `time`, `url`, `uuid` | types of these crates are fields of forms ([`form::Field`]) |

// Ids in comments, such as (N5), name rules: SPEC.md lists them with the tests that show each.

#[cfg(feature = "authorize")]
pub mod authorize;
mod budget;
#[cfg(feature = "client")]
mod causes;
#[cfg(feature = "client")]
pub mod client;
mod event_stream;
pub mod http;
#[cfg(feature = "client")]
mod in_process;
#[cfg(feature = "legacy")]
pub mod legacy;
#[cfg(test)]
#[path = "../../roundtrip-core/tests/common/listed.rs"]
mod listed;
mod lock;
#[cfg(feature = "oauth")]
pub mod oauth;
#[cfg(any(feature = "authorize", feature = "client"))]
mod outbound;
mod schema;
pub mod server;
#[cfg(any(feature = "authorize", feature = "oauth"))]
mod signature;
pub mod stdio;
pub mod task;
#[cfg(feature = "opentelemetry")]
pub mod telemetry;
pub mod testing;

#[cfg(feature = "authorize")]
pub use authorize::Authorize;
#[cfg(feature = "client")]
pub use client::{
    Change, Changes, Client, Error, FormAnswer, FormRequest, Pending, Resend, SampleRequest, Started, Task,
    TaskDialect, TaskHandle, Turn, UrlAnswer, UrlRequest,
};
#[cfg(feature = "client")]
pub use in_process::InProcess;
#[cfg(feature = "legacy")]
pub use legacy::Handshake;
#[cfg(feature = "oauth")]
pub use oauth::OAuth;
pub use roundtrip_core::form::{self, Choice, Form};
pub use roundtrip_core::round::{Question, inspect};
pub use roundtrip_core::{seal, wire};
/// ```
/// # use roundtrip::{Args, Tool};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Greet { name: String }
/// #[roundtrip::debug_handler]
/// async fn greet(Args(Greet { name }): Args<Greet>) -> String {
///     format!("Hello, {name}!")
/// }
/// # Tool::new("greet", greet);
/// ```
pub use roundtrip_macros::debug_handler;
pub use roundtrip_macros::{Choice, Form};
pub use server::{
    Answered, Args, Ask, AskError, Asked, Asking, Cache, Caller, Catalog, Extension, Group, Json,
    JsonWithText, Keyring, Log, MemoryLedger, Parts, Principal, Progress, Prompt, RateLimit, Reply, Resolve,
    Resolved, Resource, ResourceTemplate, Round, Server, State, Status, Tasks, Tool, ToolError, Uri, When,
};
pub use task::MemoryTasks;

/// Doc tests of the chapter on access tokens.
#[cfg(all(doctest, feature = "authorize"))]
mod who_is_calling_chapter {
    #[doc = include_str!("../../../docs/manual/who-is-calling.md")]
    struct WhoIsCalling;
}

/// Doc tests of the chapter on sign-ins.
#[cfg(all(doctest, feature = "oauth", feature = "legacy"))]
mod oauth_chapter {
    #[doc = include_str!("../../../docs/manual/signing-in.md")]
    struct SigningIn;
}

/// Doc tests of the README and the manual: every snippet compiles and, where it can, runs.
#[cfg(all(doctest, feature = "client", feature = "legacy", feature = "validation"))]
mod copied {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/manual/getting-started.md")]
    struct GettingStarted;
    #[doc = include_str!("../../../docs/manual/servers.md")]
    struct Servers;
    #[doc = include_str!("../../../docs/manual/prompts-and-resources.md")]
    struct PromptsAndResources;
    #[doc = include_str!("../../../docs/manual/rounds.md")]
    struct Rounds;
    #[doc = include_str!("../../../docs/manual/forms.md")]
    struct Forms;
    #[doc = include_str!("../../../docs/manual/replay.md")]
    struct Replay;
    #[doc = include_str!("../../../docs/manual/seal.md")]
    struct Seal;
    #[doc = include_str!("../../../docs/manual/migrating.md")]
    struct Migrating;
    #[doc = include_str!("../../../docs/manual/clients.md")]
    struct Clients;
    #[doc = include_str!("../../../docs/manual/transports.md")]
    struct Transports;
    #[doc = include_str!("../../../docs/manual/eras.md")]
    struct Eras;
    #[doc = include_str!("../../../docs/manual/deprecated.md")]
    struct Deprecated;
    #[doc = include_str!("../../../docs/manual/streaming.md")]
    struct Streaming;
    #[doc = include_str!("../../../docs/manual/tasks.md")]
    struct Tasks;
    #[doc = include_str!("../../../docs/manual/rate-limits.md")]
    struct RateLimits;
    #[doc = include_str!("../../../docs/manual/limits.md")]
    struct Limits;
    #[doc = include_str!("../../../docs/manual/cookbook/confirm-before-deletion.md")]
    struct ConfirmBeforeDeletion;
    #[doc = include_str!("../../../docs/manual/cookbook/credentials-by-url.md")]
    struct CredentialsByUrl;
    #[doc = include_str!("../../../docs/manual/cookbook/behind-a-load-balancer.md")]
    struct BehindALoadBalancer;
    #[doc = include_str!("../../../docs/manual/cookbook/in-axum.md")]
    struct InAxum;
    #[doc = include_str!("../../../docs/manual/cookbook/with-a-kms.md")]
    struct WithAKms;
    #[doc = include_str!("../../../docs/manual/cookbook/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/manual/cookbook/from-rmcp.md")]
    struct FromRmcp;
    #[doc = include_str!("../../../docs/manual/cookbook/from-fastmcp.md")]
    struct FromFastmcp;
}

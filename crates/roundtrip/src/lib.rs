//! Roundtrip: a Model Context Protocol SDK.

#[cfg(feature = "client")]
pub mod client;
pub mod http;
#[cfg(feature = "client")]
mod in_process;
mod schema;
pub mod server;
pub mod stdio;

#[cfg(feature = "client")]
pub use client::{Change, Changes, Client, Error};
pub use roundtrip_core::wire;
pub use server::{
    Args, Cache, Caller, Catalog, Extension, Json, Log, Principal, Progress, Prompt, Resource,
    ResourceTemplate, Server, State, Tool, ToolError, Uri,
};

//! Roundtrip: a Model Context Protocol SDK.

pub mod http;
pub mod server;
pub mod stdio;

pub use roundtrip_core::wire;
pub use server::{
    Args, Cache, Caller, Catalog, Extension, Json, Log, Principal, Progress, Prompt, Resource,
    ResourceTemplate, Server, State, Tool, ToolError, Uri,
};

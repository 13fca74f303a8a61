//! Sign-in of clients: OAuth 2.1 (feature `oauth`).

mod flight;
pub mod store;
mod tokens;

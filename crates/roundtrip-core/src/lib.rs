//! The sans-I/O core of Roundtrip.
//!
//! Every rule of the protocol that needs no socket, no clock and no runtime lives here, so that it can be
//! tested with nothing but bytes. Users depend on the `roundtrip` crate, which re-exports what they need.
//!
//! | module | content |
//! |---|---|
//! | [`wire`] | the specification's types in the specification's spelling |
//! | [`form`] | forms: the check of answers against a schema, and the traits of Rust types that are forms |
//! | [`round`] | one round of a flow: questions, answers, and the journal between rounds |
//! | [`exchange`] | the client's retry loop as a state machine: questions, pauses, the next request |
//! | [`seal`] | sealing of a flow's state into a token: key ring, claims, bindings |
//! | [`auth`] | authorization: challenges, metadata, claims, and the sign-in of a client as a state machine |
//! | [`error`] | errors by who must act; the one mapping to JSON-RPC code and HTTP status |

pub mod auth;
pub mod error;
pub mod exchange;
pub mod form;
pub mod round;
pub mod seal;
pub mod wire;

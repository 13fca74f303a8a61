//! The sans-I/O core of Roundtrip.
//!
//! Every rule of the protocol that needs no socket, no clock and no runtime lives here, so that it can be
//! tested with nothing but bytes. Users depend on the `roundtrip` crate, which re-exports what they need.
//!
//! | room | what it holds |
//! |---|---|
//! | [`wire`] | the specification's nouns in the specification's spelling |
//! | [`form`] | what a form may ask, how an answer is checked, how a type stands for both |
//! | [`round`] | one round of a flow: questions, answers, and the journal between rounds |
//! | [`exchange`] | the client's side of a call that takes several rounds: when to ask, when to pause, what to send |
//! | [`seal`] | a flow's state as an opaque token, and back: key ring, claims, bindings |
//! | [`error`] | errors by who must act; the one mapping to JSON-RPC code and HTTP status |

pub mod error;
pub mod exchange;
pub mod form;
pub mod round;
pub mod seal;
pub mod wire;

//! Clients of the handshake eras: the same handlers, in the words of 2025-11-25 and before.

mod asking;
mod bounds;
mod by_hand;
mod http;
mod may;
mod sessions;
mod stdio;
mod tasks;
mod tools;
mod waiting;
mod words;

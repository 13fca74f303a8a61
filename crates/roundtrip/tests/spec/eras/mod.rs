//! Clients of the handshake eras: the same handlers, in the words of 2025-11-25 and before.

mod asking;
mod bounds;
mod by_hand;
mod fleet;
mod http;
mod may;
mod sessions;
mod stdio;
mod task_kinds;
mod tasks;
mod tools;
mod waiting;
mod words;

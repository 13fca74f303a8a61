//! Clients that sign in: against a server that wants tokens and an authorization server, both on this machine.

mod listener;
mod pending;
mod renewal;
mod sign_in;
mod step_up;
mod world;

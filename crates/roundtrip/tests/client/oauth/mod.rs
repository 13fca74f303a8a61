//! Clients that sign in: against a server that wants tokens and an authorization server, both on this machine.

mod change_of_user;
mod listener;
mod pending;
#[path = "../../common/proxied.rs"]
mod proxied;
mod proxies;
mod queries;
mod renewal;
mod sign_in;
mod step_up;
mod timing;
mod world;

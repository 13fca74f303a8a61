//! The client against real servers, in process, over HTTP and stdio, and against peers that misbehave.

#![cfg(feature = "client")]

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod calls;
#[cfg(test)]
#[cfg(unix)]
mod closing;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod listen;
#[cfg(test)]
#[cfg(any(feature = "legacy", feature = "oauth", feature = "validation"))]
#[path = "../common/logged.rs"]
mod logged;
#[cfg(test)]
#[cfg(not(feature = "legacy"))]
mod modern_only;
#[cfg(test)]
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(test)]
#[cfg(feature = "legacy")]
mod old;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod rounds;
#[cfg(test)]
#[cfg(feature = "validation")]
mod schemas;
#[cfg(test)]
#[cfg(unix)]
mod stdio;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod versions;

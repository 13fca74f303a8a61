//! The stores, on every database there is. PostgreSQL, Redis and nginx are those of `cargo xtask services`.

#![cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[macro_use]
mod support;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod adoption;
#[cfg(all(unix, feature = "sqlite"))]
mod behind_a_proxy;
mod contract;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod costs;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod example;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod kinds;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod old_tasks;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod outages;
#[cfg(feature = "postgres")]
mod plans;
#[cfg(unix)]
mod processes;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod rates;
mod rounds;
mod secrets;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod services;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tasks;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod watching;
#[cfg(all(unix, any(feature = "sqlite", feature = "postgres")))]
mod workers;

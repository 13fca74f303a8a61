//! Requests without a guard: the feature `authorize` is off.

use std::future::Future;
use std::io;
use std::pin::Pin;

use http::request::Parts;
use http::{HeaderValue, Request, Response};
use roundtrip_core::wire::ErrorObject;

use super::body::Body;
use super::service::{Arrived, Http};

/// Place of the guard.
#[derive(Clone, Default)]
pub(super) struct GuardSlot {}

impl GuardSlot {
    pub(super) fn forbid_principal(&mut self) {}
}

/// Outcome of a request's arrival.
pub(super) enum Entered {
    Now(Arrived),
    #[expect(dead_code, reason = "only a guard has something to wait for")]
    Later(Pin<Box<dyn Future<Output = Arrived> + Send>>),
}

impl Http {
    pub(super) fn enter(&self, parts: &mut Parts) -> Entered {
        Entered::Now(self.anonymous(parts))
    }

    pub(super) fn challenge(&self, _: &ErrorObject) -> Option<HeaderValue> {
        None
    }

    #[cfg(feature = "legacy")]
    pub(super) fn is_guarded(&self) -> bool {
        false
    }

    pub(super) fn check(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn metadata<B>(&self, _: &Request<B>) -> Option<Response<Body>> {
        None
    }
}

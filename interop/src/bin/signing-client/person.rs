//! The users who sign in, with a browser that is a command.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::oauth::{DevicePending, HttpUrl, OAuth};
use roundtrip_interop::browser::visit;

/// Name of the user whom most checks sign in.
pub(crate) const ALICE: &str = "alice";

/// A user with a browser, whose visits are counted.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    name: &'static str,
    visits: Arc<AtomicUsize>,
}

impl Default for Person {
    fn default() -> Self {
        Self::named(ALICE)
    }
}

impl Person {
    /// Creates a user.
    pub(crate) fn named(name: &'static str) -> Self {
        Self { name, visits: Arc::default() }
    }

    /// Opens the browser for a sign-in, and counts it.
    pub(crate) fn at(&self, sign_in: OAuth) -> OAuth {
        let Self { name, visits } = self.clone();
        sign_in.browser(move |url: HttpUrl| {
            visits.fetch_add(1, Ordering::Relaxed);
            async move { visit(name, &[url.as_str()]).await.map(drop) }
        })
    }

    /// Enters the code of a device, and counts it.
    pub(crate) fn entering(&self, sign_in: OAuth) -> OAuth {
        let Self { name, visits } = self.clone();
        sign_in.device(move |code: DevicePending| {
            visits.fetch_add(1, Ordering::Relaxed);
            async move { visit(name, &[code.url().as_str(), code.user_code()]).await.map(drop) }
        })
    }

    /// Returns how often the browser was opened.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::Relaxed)
    }
}

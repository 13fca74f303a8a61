//! The person who signs in, with a browser that is a command.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::oauth::{DevicePending, HttpUrl, OAuth};
use roundtrip_interop::report::Failure;

/// Counts how often the browser was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Person(Arc<AtomicUsize>);

impl Person {
    /// Opens the browser for a sign-in, and counts it.
    pub(crate) fn at(&self, sign_in: OAuth) -> OAuth {
        let visits = Arc::clone(&self.0);
        sign_in.browser(move |url: HttpUrl| {
            visits.fetch_add(1, Ordering::Relaxed);
            async move { visit(&[url.as_str()]).await.map(drop) }
        })
    }

    /// Enters the code of a device, and counts it.
    pub(crate) fn entering(&self, sign_in: OAuth) -> OAuth {
        let visits = Arc::clone(&self.0);
        sign_in.device(move |code: DevicePending| {
            visits.fetch_add(1, Ordering::Relaxed);
            async move { visit(&[code.url().as_str(), code.user_code()]).await.map(drop) }
        })
    }

    /// Returns how often the browser was opened.
    pub(crate) fn visits(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs the browser. Returns the URL that it ended at.
pub(crate) async fn visit(arguments: &[&str]) -> Result<String, Failure> {
    let browser = std::env::var("BROWSER")?;
    let mut words = browser.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).args(arguments);
    let said = tokio::task::spawn_blocking(move || command.output()).await??;
    if !said.status.success() {
        return Err(format!("the browser: {}", String::from_utf8_lossy(&said.stderr)).into());
    }
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

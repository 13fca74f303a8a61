//! Checks of the URLs that servers ask users to visit.

use roundtrip_core::error::{Error, PeerMisbehaved};
use roundtrip_core::exchange::{Pending, PendingQuestion};
use roundtrip_core::wire::{Method, clip};
use url::Url;

use super::limits::ClientLimits;

/// Number of characters of a refused URL that are shown.
const SHOWN: usize = 80;

/// Refuses a round that would send users to something else than a web page, before any handler sees it (elicitation,
/// "Safe URL Handling").
pub(crate) fn check_pages<M: Method>(pending: &Pending<M>, limits: &ClientLimits) -> Result<(), Error> {
    let check = |question: PendingQuestion<'_>| match question.url() {
        Some(url) => check_url(url, limits).map_err(|why| {
            let key = clip(question.key());
            PeerMisbehaved::UnsafeUrl(format!("{} asks `{key}` (url): {why}", pending.request_name())).into()
        }),
        None => Ok(()),
    };
    pending.questions().try_for_each(check)
}

/// Checks that a URL is an absolute one of HTTP, written as a browser would read it; the error says why it is not. Other
/// schemes run code (`javascript:`), show made-up content (`data:`) or open local files (`file:`).
pub(crate) fn check_url(text: &str, limits: &ClientLimits) -> Result<(), String> {
    let most = limits.url_bytes;
    if text.len() > most {
        return Err(format!("a URL of {} bytes, and {most} are allowed", text.len()));
    }
    let refused = |why: &str| {
        let shown: String = text.chars().take(SHOWN).collect();
        Err(format!("{shown:?} is no URL to send people to: {why}"))
    };
    // Browsers pass over some of these, and then open another URL than the one that was shown.
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refused("it has blanks or control characters");
    }
    match Url::parse(text) {
        Err(error) => refused(&error.to_string()),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            refused("its scheme must be `http` or `https`")
        }
        Ok(url) if !text[url.scheme().len()..].starts_with("://") => refused("it is not absolute"),
        Ok(_) => Ok(()),
    }
}

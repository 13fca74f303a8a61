//! Web pages that servers want people to visit.

use roundtrip_core::error::Error;
use roundtrip_core::exchange::{Pending, Question};
use roundtrip_core::wire::{Method, clip};
use url::Url;

use super::limits::ClientLimits;

/// How many characters of a refused URL are shown.
const SHOWN: usize = 80;

/// Refuses a round that would send people to something else than a web page, before anybody sees it (elicitation, "Safe
/// URL Handling").
pub(crate) fn check_pages<M: Method>(pending: &Pending<M>, limits: &ClientLimits) -> Result<(), Error> {
    let check = |question: Question<'_>| match question.url() {
        Some(url) => check_url(url, limits).map_err(|why| {
            Error::PeerMisbehaved(format!("`{}` asks `{}` (url): {why}", M::NAME, clip(question.key())))
        }),
        None => Ok(()),
    };
    pending.questions().try_for_each(check)
}

/// Checks that a URL is an absolute one of HTTP, written as a browser would read it; why it is not, otherwise. Other
/// schemes run code (`javascript:`), show what somebody made up (`data:`) or open what is not on the web (`file:`).
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

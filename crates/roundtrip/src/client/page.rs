//! Checks of questions before a handler sees them: the URLs that users are asked to visit, the conversations for a model.

use roundtrip_core::error::{Error, PeerMisbehaved, RequestName};
use roundtrip_core::exchange::Pending;
use roundtrip_core::wire::{ElicitRequestParams, InputRequest, Method, clip};
use url::Url;

use super::limits::ClientLimits;

/// Number of characters of a refused URL that are shown.
const SHOWN: usize = 80;

/// Refuses a round that would send users to something else than a web page, before any handler sees it (elicitation,
/// "Safe URL Handling"), or a model a conversation whose tool uses lack their results (sampling, "Tool Use").
pub(crate) fn check_pages<M: Method>(pending: &Pending<M>, limits: &ClientLimits) -> Result<(), Error> {
    let questions = pending.questions().map(|question| (question.key(), question.request()));
    check_questions(questions, || pending.request_name(), limits)
}

/// Refuses questions of a request that no handler should see.
pub(crate) fn check_questions<'a>(
    questions: impl Iterator<Item = (&'a str, &'a InputRequest)>,
    request: impl Fn() -> RequestName,
    limits: &ClientLimits,
) -> Result<(), Error> {
    for (key, question) in questions {
        if let InputRequest::Elicit(ElicitRequestParams::Url(page)) = question {
            check_url(&page.url, limits).map_err(|why| {
                PeerMisbehaved::UnsafeUrl(format!("{} asks `{}` (url): {why}", request(), clip(key)))
            })?;
        }
        if let InputRequest::CreateMessage(params) = question {
            params.check_tool_use().map_err(|why| {
                PeerMisbehaved::UnfitMessage(format!("{} asks `{}` (sampling): {why}", request(), clip(key)))
            })?;
        }
    }
    Ok(())
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

//! The search for a metadata document: one URL after another, redirects within bounds.

use std::collections::VecDeque;

use http::StatusCode;

use super::http::AuthResponse;
use crate::auth::error::AuthError;
use crate::auth::url::HttpUrl;
use crate::auth::url_policy::UrlPolicy;

/// Greatest number of redirects from one URL.
const MOST_REDIRECTS: u8 = 3;

/// URLs that are left to ask.
#[derive(Debug, Clone)]
pub(super) struct Search {
    candidates: VecDeque<HttpUrl>,
    redirects: u8,
    /// The most telling failure so far: a server that is down, or a document that is of no use.
    failure: Option<AuthError>,
}

/// Outcome of one response.
pub(super) enum Look {
    /// The body may be the document.
    Document,
    /// Ask this URL next.
    Next(HttpUrl),
    /// Nothing is left to ask.
    Exhausted,
}

impl Search {
    /// Begins a search. URLs that are not allowed, or no URLs, are left out.
    pub(super) fn new(urls: impl IntoIterator<Item = String>, policy: &UrlPolicy) -> Self {
        let mut candidates = VecDeque::new();
        for url in urls.into_iter().filter_map(|url| policy.read(&url).ok()) {
            if !candidates.contains(&url) {
                candidates.push_back(url);
            }
        }
        Self { candidates, redirects: 0, failure: None }
    }

    /// Takes the next URL.
    pub(super) fn next(&mut self) -> Option<HttpUrl> {
        self.redirects = 0;
        self.candidates.pop_front()
    }

    /// Takes the next URL after a response that is no document.
    pub(super) fn skip(&mut self) -> Look {
        self.next().map_or(Look::Exhausted, Look::Next)
    }

    /// Takes the next URL after a failure, which is remembered if it is the first.
    pub(super) fn failed(&mut self, failure: AuthError) -> Look {
        self.failure.get_or_insert(failure);
        self.skip()
    }

    /// Returns the failure that ended the search, if there was more to it than absence.
    pub(super) fn failure(self) -> Option<AuthError> {
        self.failure
    }

    /// Looks at a response. A redirect is followed within the origin that was asked.
    pub(super) fn look(&mut self, url: &HttpUrl, response: &AuthResponse<'_>) -> Look {
        if response.status == StatusCode::OK {
            return Look::Document;
        }
        if response.is_outage() {
            let (url, status) = (url.without_query().to_owned(), response.status);
            return self.failed(AuthError::Unavailable { url, status });
        }
        let target = response.location().and_then(|to| url.resolve(to).ok());
        match target.filter(|to| to.origin() == url.origin() && self.redirects < MOST_REDIRECTS) {
            Some(target) => {
                self.redirects += 1;
                Look::Next(target)
            }
            None => self.skip(),
        }
    }
}

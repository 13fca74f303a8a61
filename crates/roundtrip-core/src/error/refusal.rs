//! Refusals of a server: JSON-RPC errors by what the caller can do about them, and HTTP statuses.

use std::fmt;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::Value;

use super::{DECLINED, RATE_LIMITED, Sent};
use crate::wire::{
    ClientCapabilities, ErrorObject, INVALID_PARAMS, INVALID_REQUEST, MISSING_REQUIRED_CLIENT_CAPABILITY,
    json,
};

/// JSON-RPC error of a server, told apart where its code alone does not say what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerRejection {
    /// The server does not accept the `requestState`, because it expired for one (-32602 with `data.reason`
    /// `invalid_request_state`): make the call anew.
    #[error("{0}")]
    StateRejected(ErrorObject),
    /// The user declined or dismissed a question that the call depends on.
    #[error("{0}")]
    Declined(ErrorObject),
    /// The client did not declare a capability that the call needs (-32021, and -32600 of earlier revisions, with
    /// `data.requiredCapabilities`). The text names the handlers that declare it.
    #[error("{error}{add}", error = .0, add = remedy(.0))]
    MissingCapability(ErrorObject),
    /// The caller is past a rate limit: [`Error::retry_after`](super::Error::retry_after) says how long to wait. Nothing has
    /// run, so that the same request, with the same `requestState`, can be sent then.
    #[error("{0}")]
    RateLimited(ErrorObject),
    /// Any other error: its code says which.
    #[error("{0}")]
    Other(ErrorObject),
}

impl ServerRejection {
    /// Returns the JSON-RPC error.
    pub fn error(&self) -> &ErrorObject {
        match self {
            Self::StateRejected(error)
            | Self::Declined(error)
            | Self::MissingCapability(error)
            | Self::RateLimited(error)
            | Self::Other(error) => error,
        }
    }
}

impl ServerRejection {
    /// Returns the capabilities that the server requires, if that is why it refused.
    pub fn required_capabilities(&self) -> Option<ClientCapabilities> {
        match self {
            Self::MissingCapability(error) => required(error),
            _ => None,
        }
    }
}

impl From<ErrorObject> for ServerRejection {
    fn from(error: ErrorObject) -> Self {
        let reason = error.data.as_ref().and_then(|data| data.get("reason")).and_then(Value::as_str);
        match (error.code, reason) {
            (INVALID_PARAMS, Some("invalid_request_state")) => Self::StateRejected(error),
            // Servers of other authors have the code for "forbidden".
            (DECLINED, Some("declined" | "cancelled")) => Self::Declined(error),
            (MISSING_REQUIRED_CLIENT_CAPABILITY | INVALID_REQUEST, _) if required(&error).is_some() => {
                Self::MissingCapability(error)
            }
            (RATE_LIMITED, _) => Self::RateLimited(error),
            _ => Self::Other(error),
        }
    }
}

/// Returns the capabilities that an error says are required.
fn required(error: &ErrorObject) -> Option<ClientCapabilities> {
    let required = error.data.as_ref()?.get("requiredCapabilities")?;
    json::from_value(required).ok()
}

/// Names the methods of the client that declare what an error says is required.
fn remedy(error: &ErrorObject) -> String {
    let missing = ClientCapabilities::default().missing(&required(error).unwrap_or_default());
    let mut methods: Vec<&str> = missing.iter().map(|name| declared_by(name)).collect();
    methods.dedup();
    if methods.is_empty() { String::new() } else { format!(": add {}", methods.join(" and ")) }
}

/// Returns the method of the client that declares a capability.
fn declared_by(capability: &str) -> &'static str {
    match capability {
        "elicitation" | "elicitation.form" => "`Client::on_form(..)`",
        "elicitation.url" => "`Client::on_url(..)`",
        "sampling" => "`Client::on_sample(..)`",
        "sampling.tools" => "`Client::on_sample(..).sampling_tools()`",
        "roots" => "`Client::roots(..)`",
        _ => "`Client::capabilities(..)`",
    }
}

/// HTTP response that refuses a request.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRefusal {
    /// HTTP status.
    pub status: StatusCode,
    /// URL that was called, without credentials and query.
    pub url: Option<String>,
    /// Response headers: `WWW-Authenticate` has the challenge of a 401, `Retry-After` the time to wait.
    pub headers: HeaderMap,
    /// Beginning of the body, as text on one line.
    pub body: String,
    /// JSON-RPC error in the body. Without a challenge, such an answer is [`Error::Rejected`](super::Error::Rejected).
    pub error: Option<ErrorObject>,
    /// Tells whether the server may have run the request.
    pub sent: Sent,
    /// Number of the token that the request was sent with, by the count of its transport; 0 for none.
    pub token: u64,
}

impl HttpRefusal {
    /// Builds a refusal without a body. Redirects and the statuses that a server gives before it looks at a request
    /// say that it was not run.
    pub fn new(status: StatusCode, headers: HeaderMap) -> Self {
        let untouched = status.is_redirection()
            || matches!(
                status,
                StatusCode::UNAUTHORIZED
                    | StatusCode::FORBIDDEN
                    | StatusCode::NOT_FOUND
                    | StatusCode::METHOD_NOT_ALLOWED
                    | StatusCode::TOO_MANY_REQUESTS
            );
        let sent = if untouched { Sent::No } else { Sent::Maybe };
        Self { status, url: None, headers, body: String::new(), error: None, sent, token: 0 }
    }

    /// Returns whether the server wants other credentials: a 401, or a 403 with a challenge.
    pub fn is_challenge(&self) -> bool {
        match self.status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => self.headers.contains_key(WWW_AUTHENTICATE),
            _ => false,
        }
    }
}

impl fmt::Display for HttpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server")?;
        if let Some(url) = &self.url {
            write!(f, " at {url}")?;
        }
        write!(f, " answered HTTP {}", self.status)?;
        match (&self.error, self.body.as_str()) {
            (Some(error), _) => write!(f, ": {error}"),
            (None, "") => f.write_str(" and no body"),
            (None, body) => write!(f, ": {body}"),
        }
    }
}

impl std::error::Error for HttpRefusal {}

/// Shows the names of headers alone: values may be credentials.
impl fmt::Debug for HttpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("HttpRefusal")
            .field("status", &self.status)
            .field("url", &self.url)
            .field("headers", &names)
            .field("body", &self.body)
            .field("error", &self.error)
            .field("sent", &self.sent)
            .finish()
    }
}

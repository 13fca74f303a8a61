//! Questions of a handler, and the pins of their answers.

use core::net::IpAddr;
use std::borrow::Cow;
use std::sync::LazyLock;

use super::pin::{Pin, PinKey};
use crate::form::{Definition, Form};
use crate::wire::{
    BooleanSchema, ClientCapabilities, CreateMessageRequestParams, ElicitRequestFormParams,
    ElicitRequestParams, ElicitRequestUrlParams, ElicitSchema, ElicitationCapability, IncludeContext,
    InputRequest, JsonObject, ListRootsRequestParams, PrimitiveSchemaDefinition, SamplingCapability, clip,
};

/// The field of [`Question::confirm`].
pub(super) const CONFIRM: &str = "confirm";

type Text = Cow<'static, str>;

/// Kind and content of a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum QuestionKind {
    /// A form for the user to fill in.
    Form {
        /// The message to the user.
        message: Cow<'static, str>,
        /// The form.
        form: Cow<'static, Definition>,
    },
    /// A web page for the user to open. To accept is to consent, not to have finished there.
    Url {
        /// The message to the user.
        message: Cow<'static, str>,
        /// The address of the page.
        url: String,
    },
    /// A message for the client's model. Deprecated (SEP-2577).
    Sample(Box<CreateMessageRequestParams>),
    /// A request for the client's roots. Deprecated (SEP-2577).
    Roots,
}

/// A question of a handler.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its key, unique within the flow.
    pub key: Cow<'static, str>,
    /// Its kind and content.
    pub asks: QuestionKind,
    /// Identity that keeps the answer although the wording differs from round to round.
    pub identity: Option<Cow<'static, str>>,
}

impl Question {
    /// Creates a question with a form.
    pub fn form<T: Form>(key: impl Into<Text>, message: impl Into<Text>) -> Self {
        Self::with_form(key, message, Cow::Borrowed(T::definition()))
    }

    /// Creates a question with a form that is given by its schema, not by a type.
    pub fn form_of(key: impl Into<Text>, message: impl Into<Text>, schema: ElicitSchema) -> Self {
        Self::with_form(key, message, Cow::Owned(Definition::new(schema)))
    }

    /// Creates a question for a yes or a no.
    pub fn confirm(key: impl Into<Text>, message: impl Into<Text>) -> Self {
        static FORM: LazyLock<Definition> = LazyLock::new(|| {
            let yes = PrimitiveSchemaDefinition::Boolean(BooleanSchema::default());
            Definition::new(ElicitSchema {
                properties: vec![(CONFIRM.to_owned(), yes)],
                required: vec![CONFIRM.to_owned()],
                ..ElicitSchema::default()
            })
        });
        Self::with_form(key, message, Cow::Borrowed(&FORM))
    }

    fn with_form(key: impl Into<Text>, message: impl Into<Text>, form: Cow<'static, Definition>) -> Self {
        Self::new(key, QuestionKind::Form { message: message.into(), form })
    }

    /// Creates a question for consent to open a web page.
    pub fn url(key: impl Into<Text>, message: impl Into<Text>, url: impl Into<String>) -> Self {
        Self::new(key, QuestionKind::Url { message: message.into(), url: url.into() })
    }

    /// Creates a question to the client's model. Deprecated (SEP-2577).
    pub fn sample(key: impl Into<Text>, request: CreateMessageRequestParams) -> Self {
        Self::new(key, QuestionKind::Sample(Box::new(request)))
    }

    /// Creates a question for the client's roots. Deprecated (SEP-2577).
    pub fn roots(key: impl Into<Text>) -> Self {
        Self::new(key, QuestionKind::Roots)
    }

    /// Creates a question of any kind.
    ///
    /// ```
    /// use roundtrip_core::round::{Question, QuestionKind};
    ///
    /// let question = Question::new("folders", QuestionKind::Roots);
    /// assert!(question.needs().roots.is_some());
    /// ```
    pub fn new(key: impl Into<Text>, asks: QuestionKind) -> Self {
        Self { key: key.into(), asks, identity: None }
    }

    /// Keeps its answer when the wording changes, as long as this identity does not. The form, or the origin of the
    /// URL, has to stay the same too.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Text>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Returns the pin of its answer: over its kind, its schema, and its wording or declared identity.
    pub fn pin(&self, key: &PinKey) -> Pin {
        let identity = self.identity.as_deref().map(str::as_bytes);
        match (&self.asks, identity) {
            (QuestionKind::Form { message, form }, None) => {
                key.pin(1, about(form.digest()), message.as_bytes())
            }
            (QuestionKind::Form { form, .. }, Some(identity)) => key.pin(2, about(form.digest()), identity),
            (QuestionKind::Url { message, url }, None) => {
                let split = (message.len() as u128).to_le_bytes();
                key.pin(3, about(split), &[message.as_bytes(), url.as_bytes()].concat())
            }
            (QuestionKind::Url { url, .. }, Some(identity)) => {
                // Consent to a page is consent to its site: a path or a query may change under a declared identity.
                let origin = origin(url);
                let split = (origin.len() as u128).to_le_bytes();
                key.pin(4, about(split), &[origin.as_bytes(), identity].concat())
            }
            (QuestionKind::Sample(params), None) => {
                key.pin(5, [0; 15], &serde_json::to_vec(params).unwrap_or_default())
            }
            (QuestionKind::Sample(_), Some(identity)) => key.pin(6, [0; 15], identity),
            (QuestionKind::Roots, identity) => key.pin(7, [0; 15], identity.unwrap_or_default()),
        }
    }

    /// Converts it to an input request. `problem` is the reason the last answer cannot be used.
    pub fn to_request(&self, problem: Option<&str>) -> InputRequest {
        let told = |message: &Cow<'static, str>| match problem {
            Some(problem) => format!("{message}\n\nThe last answer cannot be used: {problem}"),
            None => message.to_string(),
        };
        match &self.asks {
            QuestionKind::Form { message, form } => {
                InputRequest::Elicit(ElicitRequestParams::Form(ElicitRequestFormParams {
                    mode: Some(Default::default()),
                    message: told(message),
                    requested_schema: form.requested().clone(),
                }))
            }
            QuestionKind::Url { message, url } => {
                InputRequest::Elicit(ElicitRequestParams::Url(ElicitRequestUrlParams {
                    mode: Default::default(),
                    message: told(message),
                    url: url.clone(),
                }))
            }
            QuestionKind::Sample(params) => InputRequest::CreateMessage(params.clone()),
            QuestionKind::Roots => InputRequest::ListRoots(ListRootsRequestParams::default()),
        }
    }

    /// Returns the capabilities a client must have declared to be asked this (M7).
    pub fn needs(&self) -> ClientCapabilities {
        let mut needs = ClientCapabilities::default();
        match &self.asks {
            QuestionKind::Form { .. } => {
                needs.elicitation = Some(ElicitationCapability { form: Some(JsonObject::new()), url: None });
            }
            QuestionKind::Url { .. } => {
                needs.elicitation = Some(ElicitationCapability { form: None, url: Some(JsonObject::new()) });
            }
            QuestionKind::Sample(params) => {
                let tools = (!params.tools.is_empty()).then(JsonObject::new);
                let foreign = !matches!(params.include_context, None | Some(IncludeContext::None));
                needs.sampling = Some(SamplingCapability { context: foreign.then(JsonObject::new), tools });
            }
            QuestionKind::Roots => needs.roots = Some(Default::default()),
        }
        needs
    }
}

impl QuestionKind {
    /// Checks that the question may be asked: a page has an absolute URL of the web, and in a conversation with a model every tool
    /// use has its result.
    ///
    /// # Errors
    /// The text says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Url { url, .. } => host(url).map(drop),
            Self::Sample(params) => params.check_tool_use(),
            Self::Form { .. } | Self::Roots => Ok(()),
        }
    }

    /// Returns the host of a page that is reached by plain `http` and is not on this machine.
    pub fn insecure_host(&self) -> Option<&str> {
        let Self::Url { url, .. } = self else { return None };
        let host = host(url).ok().filter(|_| !url.as_bytes()[4].eq_ignore_ascii_case(&b's'))?;
        let is_here = host.eq_ignore_ascii_case("localhost")
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        (!is_here).then_some(host)
    }
}

/// Returns the host of a page that people are sent to (elicitation, "URL Mode Elicitation Requests"), if its URL is absolute and of
/// HTTP.
fn host(url: &str) -> Result<&str, String> {
    let wrong = |why: &str| Err(format!("{:?} is not a URL to send people to: {why}", clip(url)));
    if url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return wrong("it has blanks, control characters or backslashes");
    }
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return wrong("it does not begin with `https://`");
    }
    let authority = origin(url).split_once("://").map_or("", |(_, authority)| authority);
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match host_and_port.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (host_and_port, ""),
    };
    if host.is_empty() || host.starts_with('[') != host.ends_with(']') {
        return wrong("it has no host");
    }
    if !port.bytes().all(|digit| digit.is_ascii_digit()) || (!port.is_empty() && port.parse::<u16>().is_err())
    {
        return wrong("its port is not a number up to 65535");
    }
    Ok(host)
}

/// Returns the scheme and authority of a URL as spelled, up to where every parser sees them end (some take a
/// backslash for a slash). A URL without an authority is all origin.
fn origin(url: &str) -> &str {
    let Some(start) = url.find("://").map(|colon| colon + "://".len()) else { return url };
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |length| start + length);
    &url[..end]
}

/// Drops the last byte: in a length it is zero, and a digest is long enough without it.
fn about(bytes: [u8; 16]) -> [u8; 15] {
    let [about @ .., _] = bytes;
    about
}

//! Handlers for the server's questions, and the capabilities that a client declares for them.

use std::future::poll_fn;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use roundtrip_core::error::{ApiMisuse, Error, PeerMisbehaved, RequestName};
use roundtrip_core::exchange::{Answer, Kind, Pending, PendingQuestion};
use roundtrip_core::wire::{
    ClientCapabilities, ElicitRequestParams, ElicitationCapability, InputRequest, JsonObject, Method, clip,
};

use super::questions::{FormRequest, Origin, RootsRequest, SampleRequest, UrlRequest};

/// An answer under way.
type Answering = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send>>;
pub(super) type Handler<Q> = Arc<dyn Fn(Q) -> Answering + Send + Sync>;

/// Handlers by the kind of question they are for.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(super) form: Option<Handler<FormRequest>>,
    pub(super) url: Option<Handler<UrlRequest>>,
    pub(super) sample: Option<Handler<SampleRequest>>,
    pub(super) roots: Option<Handler<RootsRequest>>,
    pub(super) sampling_tools: bool,
    /// Capabilities declared beyond those of the handlers.
    pub(super) capabilities: ClientCapabilities,
    /// Extension by which the client gets its tokens.
    #[cfg(feature = "oauth")]
    pub(super) extension: Option<&'static str>,
}

impl Handlers {
    /// Returns the declared capabilities, those of the handlers included. A caller who takes questions by hand can put forms
    /// and pages to the user.
    pub(crate) fn declared(&self, by_hand: bool) -> ClientCapabilities {
        let mut declared = self.capabilities.clone();
        let (form, url) = (self.form.is_some() || by_hand, self.url.is_some() || by_hand);
        if form || url {
            let elicitation = declared.elicitation.get_or_insert_with(|| ElicitationCapability {
                form: form.then(JsonObject::new),
                url: url.then(JsonObject::new),
            });
            // Naming no mode at all means forms (E3), and naming another must not take that back.
            if form || elicitation.allows_form() {
                elicitation.form.get_or_insert_with(JsonObject::new);
            }
            if url {
                elicitation.url.get_or_insert_with(JsonObject::new);
            }
        }
        if self.sample.is_some() {
            let sampling = declared.sampling.get_or_insert_with(Default::default);
            if self.sampling_tools {
                sampling.tools.get_or_insert_with(JsonObject::new);
            }
        }
        #[cfg(feature = "oauth")]
        if let Some(extension) = self.extension {
            declared.extensions.entry(extension.to_owned()).or_default();
        }
        if self.roots.is_some() {
            declared.roots.get_or_insert_with(Default::default);
        }
        declared
    }

    /// Checks that there is a handler for a question, before any handler is asked.
    fn check(
        &self,
        request: &RequestName,
        question: PendingQuestion<'_>,
        declared: &ClientCapabilities,
    ) -> Result<(), Error> {
        let (key, kind) = (clip(question.key()), question.kind());
        let elicitation = declared.elicitation.as_ref();
        let (handled, said, add) = match kind {
            Kind::Form => {
                (self.form.is_some(), elicitation.is_some_and(ElicitationCapability::allows_form), "on_form")
            }
            Kind::Url => {
                (self.url.is_some(), elicitation.is_some_and(ElicitationCapability::allows_url), "on_url")
            }
            Kind::Sampling => (self.sample.is_some(), declared.sampling.is_some(), "on_sample"),
            _ => (self.roots.is_some(), declared.roots.is_some(), "on_roots"),
        };
        if let InputRequest::CreateMessage(params) = question.request()
            && !params.tools.is_empty()
            && declared.sampling.as_ref().is_none_or(|sampling| sampling.tools.is_none())
        {
            return Err(PeerMisbehaved::NotOffered(format!(
                "{request} asks `{key}` ({kind}) with tools for the model, which this client did not offer"
            ))
            .into());
        }
        match (handled, said) {
            (true, _) => Ok(()),
            (false, true) => Err(ApiMisuse::NoHandler(format!(
                "{request} asks `{key}` ({kind}), which this client declares and has no handler for: \
                 add `{add}`, or take the questions yourself with `one_round`"
            ))
            .into()),
            (false, false) => Err(PeerMisbehaved::NotOffered(format!(
                "{request} asks `{key}` ({kind}), which this client did not offer to answer"
            ))
            .into()),
        }
    }

    /// Calls the handler for a question; none where there is no such handler.
    fn ask(&self, question: PendingQuestion<'_>, origin: Origin) -> Option<Answering> {
        Some(match question.request() {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => self.form.as_ref()?(FormRequest {
                origin,
                message: form.message.clone(),
                schema: form.requested_schema.clone(),
            }),
            InputRequest::Elicit(ElicitRequestParams::Url(page)) => self.url.as_ref()?(UrlRequest {
                origin,
                message: page.message.clone(),
                url: page.url.clone(),
            }),
            InputRequest::CreateMessage(params) => {
                self.sample.as_ref()?(SampleRequest { origin, params: (**params).clone() })
            }
            InputRequest::ListRoots(_) => self.roots.as_ref()?(RootsRequest { origin }),
        })
    }
}

/// Puts every question of a round to its handler, side by side (C1).
pub(crate) async fn ask<M: Method>(
    handlers: &Handlers,
    mut pending: Pending<M>,
    method: &'static str,
) -> Result<Pending<M>, Error> {
    let (declared, target) = (handlers.declared(false), pending.target());
    let request = RequestName::new(method, target.clone());
    for question in pending.questions() {
        handlers.check(&request, question, &declared)?;
    }
    let origin = |key: &str| Origin {
        server: pending.server().cloned(),
        method,
        target: target.clone(),
        key: key.to_owned(),
        round: pending.round(),
    };
    let asked = pending.questions().filter_map(|question| {
        let answering = handlers.ask(question, origin(question.key()))?;
        Some((question.key().to_owned(), answering))
    });
    for (key, answer) in all(asked.collect()).await? {
        pending = pending.give(&key, answer)?;
    }
    Ok(pending)
}

/// Waits for all answers at once. The first failure ends the others.
async fn all(mut waiting: Vec<(String, Answering)>) -> Result<Vec<(String, Answer)>, Error> {
    let mut answers = Vec::with_capacity(waiting.len());
    poll_fn(move |context| {
        let mut index = 0;
        while let Some((key, answering)) = waiting.get_mut(index) {
            match answering.as_mut().poll(context) {
                Poll::Ready(Ok(answer)) => {
                    answers.push((take(key), answer));
                    drop(waiting.swap_remove(index));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => index += 1,
            }
        }
        if waiting.is_empty() { Poll::Ready(Ok(take(&mut answers))) } else { Poll::Pending }
    })
    .await
}

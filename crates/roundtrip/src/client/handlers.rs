//! Handlers for the server's questions, and the capabilities that a client declares for them.

use std::future::ready;
use std::sync::Arc;

use roundtrip_core::error::{ApiMisuse, Error, PeerMisbehaved};
use roundtrip_core::exchange::{Answer, Kind, PendingQuestion};
use roundtrip_core::wire::{
    ClientCapabilities, CreateMessageResult, ElicitRequestParams, ElicitationCapability, InputRequest,
    JsonObject, Root, clip,
};

use super::builder::Client;
use super::questions::{
    FormAnswer, FormRequest, IntoAnswer, IntoRoot, Origin, RootsRequest, SampleRequest, UrlAnswer, UrlRequest,
};
use super::transport::BoxFuture;

/// An answer under way.
pub(crate) type Answering = BoxFuture<Result<Answer, Error>>;
type Handler<Q> = Arc<dyn Fn(Q) -> Answering + Send + Sync>;

/// Handlers by the kind of question they are for.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    form: Option<Handler<FormRequest>>,
    url: Option<Handler<UrlRequest>>,
    sample: Option<Handler<SampleRequest>>,
    roots: Option<Handler<RootsRequest>>,
    sampling_tools: bool,
}

/// A client with a handler says so to servers, and is asked such questions; one without is not.
impl Client {
    /// Sets the handler for forms: it puts them to the user, and returns the user's answer.
    ///
    /// ```no_run
    /// # fn read(label: &str) -> String { label.to_owned() }
    /// # fn example() -> Result<(), roundtrip::Error> {
    /// use roundtrip::{Client, FormRequest};
    /// use serde_json::json;
    ///
    /// let client = Client::http("https://tools.example/mcp")?.on_form(async |form: FormRequest| {
    ///     println!("{:?} asks: {}", form.origin.server, form.message);
    ///     form.accept(json!({ "people": 2 }))      // checked against the form; or `form.decline()`, `form.cancel()`
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A handler that fails ends the call with its error. The questions of one round are asked side by side, so a
    /// handler may run several times at once.
    pub fn on_form<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(FormRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<FormAnswer>> + Send + 'static,
    {
        let handler = boxed(handler, |FormAnswer(answer)| Ok(answer));
        self.set(|settings| settings.handlers.form = Some(handler))
    }

    /// Sets the handler for web pages: it sends the user there, with the user's consent.
    pub fn on_url<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(UrlRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<UrlAnswer>> + Send + 'static,
    {
        let handler = boxed(handler, |UrlAnswer(answer)| Ok(answer));
        self.set(|settings| settings.handlers.url = Some(handler))
    }

    /// Sets the handler that asks a language model. Servers may let the model use tools only where
    /// [`sampling_tools`](Self::sampling_tools) says that the handler can do that.
    pub fn on_sample<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(SampleRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<CreateMessageResult>> + Send + 'static,
    {
        let handler = boxed(handler, |message| Ok(Answer::CreateMessage(Box::new(message))));
        self.set(|settings| settings.handlers.sample = Some(handler))
    }

    /// Declares that the handler given to [`on_sample`](Self::on_sample) passes tools on to the model.
    pub fn sampling_tools(self) -> Self {
        self.set(|settings| settings.handlers.sampling_tools = true)
    }

    /// Sets the folders and files a server may work in, as `file://` URIs.
    pub fn roots<R: IntoRoot>(self, roots: impl IntoIterator<Item = R>) -> Self {
        let roots: Vec<Root> = roots.into_iter().map(IntoRoot::into_root).collect();
        match Answer::roots(roots) {
            Ok(answer) => {
                let handler: Handler<RootsRequest> = Arc::new(move |_| Box::pin(ready(Ok(answer.clone()))));
                self.set(|settings| settings.handlers.roots = Some(handler))
            }
            Err(misfit) => {
                let problem = format!("`roots`: {misfit}");
                self.set(|settings| settings.problem = settings.problem.take().or(Some(problem)))
            }
        }
    }

    /// Sets the handler that lists the folders and files a server may work in, whenever a server asks.
    pub fn on_roots<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(RootsRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Vec<Root>>> + Send + 'static,
    {
        let handler = boxed(handler, |roots| {
            Answer::roots(roots).map_err(|misfit| ApiMisuse::UnfitAnswer(misfit.to_string()).into())
        });
        self.set(|settings| settings.handlers.roots = Some(handler))
    }
}

/// Boxes a handler of any kind.
fn boxed<Q, A, F, Fut>(handler: F, make: fn(A) -> Result<Answer, Error>) -> Handler<Q>
where
    A: 'static,
    F: Fn(Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoAnswer<A>> + Send + 'static,
{
    Arc::new(move |question| {
        let answering = handler(question);
        Box::pin(async move { make(answering.await.into_answer().map_err(Error::handler)?) })
    })
}

impl Handlers {
    /// Adds the capabilities of these handlers to those declared. A caller who takes questions by hand can put forms and
    /// pages to the user.
    pub(crate) fn declare(&self, mut declared: ClientCapabilities, by_hand: bool) -> ClientCapabilities {
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
        if self.roots.is_some() {
            declared.roots.get_or_insert_with(Default::default);
        }
        declared
    }

    /// Checks that there is a handler for a question, before any handler is asked.
    pub(crate) fn check(
        &self,
        method: &str,
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
                "`{method}` asks `{key}` ({kind}) with tools for the model, which this client did not offer"
            ))
            .into());
        }
        match (handled, said) {
            (true, _) => Ok(()),
            (false, true) => Err(ApiMisuse::NoHandler(format!(
                "`{method}` asks `{key}` ({kind}), which this client declares and has no handler for: \
                 add `{add}`, or take the questions yourself with `once`"
            ))
            .into()),
            (false, false) => Err(PeerMisbehaved::NotOffered(format!(
                "`{method}` asks `{key}` ({kind}), which this client did not offer to answer"
            ))
            .into()),
        }
    }

    /// Calls the handler for a question; none where there is no such handler.
    pub(crate) fn ask(&self, question: PendingQuestion<'_>, origin: Origin) -> Option<Answering> {
        Some(match question.request() {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => self.form.as_ref()?(FormRequest {
                origin,
                message: form.message.clone(),
                schema: (*form.requested_schema).clone(),
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

//! Setters of the handlers for the server's questions.

use std::future::ready;
use std::sync::Arc;

use roundtrip_core::error::{ApiMisuse, Error};
use roundtrip_core::exchange::Answer;
use roundtrip_core::wire::{CreateMessageResult, Root};

use super::builder::Client;
use super::handlers::Handler;
use super::questions::{
    FormAnswer, FormRequest, IntoAnswer, IntoRoot, RootsRequest, SampleRequest, UrlAnswer, UrlRequest,
};

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
        self.set_handlers(|handlers| handlers.form = Some(handler))
    }

    /// Sets the handler for web pages: it sends the user there, with the user's consent.
    pub fn on_url<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(UrlRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<UrlAnswer>> + Send + 'static,
    {
        let handler = boxed(handler, |UrlAnswer(answer)| Ok(answer));
        self.set_handlers(|handlers| handlers.url = Some(handler))
    }

    /// Sets the handler that asks a language model. Servers may let the model use tools only where
    /// [`sampling_tools`](Self::sampling_tools) says that the handler can do that.
    ///
    /// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
    pub fn on_sample<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(SampleRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<CreateMessageResult>> + Send + 'static,
    {
        let handler = boxed(handler, |message| Ok(Answer::CreateMessage(Box::new(message))));
        self.set_handlers(|handlers| handlers.sample = Some(handler))
    }

    /// Declares that the handler given to [`on_sample`](Self::on_sample) passes tools on to the model. Deprecated (SEP-2577).
    pub fn sampling_tools(self) -> Self {
        self.set_handlers(|handlers| handlers.sampling_tools = true)
    }

    /// Sets the folders and files a server may work in, as `file://` URIs.
    ///
    /// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
    pub fn roots<R: IntoRoot>(self, roots: impl IntoIterator<Item = R>) -> Self {
        let roots: Vec<Root> = roots.into_iter().map(IntoRoot::into_root).collect();
        match Answer::roots(roots) {
            Ok(answer) => {
                let handler: Handler<RootsRequest> = Arc::new(move |_| Box::pin(ready(Ok(answer.clone()))));
                self.set_handlers(|handlers| handlers.roots = Some(handler))
            }
            Err(misfit) => {
                let problem = format!("`roots`: {misfit}");
                self.set(|settings| settings.problem = settings.problem.take().or(Some(problem)))
            }
        }
    }

    /// Sets the handler that lists the folders and files a server may work in, whenever a server asks.
    ///
    /// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
    pub fn on_roots<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(RootsRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Vec<Root>>> + Send + 'static,
    {
        let handler = boxed(handler, |roots| {
            Answer::roots(roots).map_err(|misfit| ApiMisuse::UnfitAnswer(misfit.to_string()).into())
        });
        self.set_handlers(|handlers| handlers.roots = Some(handler))
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

//! Builder of a call; awaiting it makes the call.

use std::time::Duration;

use roundtrip_core::error::Error;
use roundtrip_core::wire::{
    CallTool, Complete, ContentBlock, Discover, GetPrompt, MayAsk, Method, Raw, ReadResource,
};

use super::builder::Client;
use super::by_hand::OneRound;
use super::flow::Rounds;
use super::options::{Options, options, rounds_options, status_option};
use super::request::Request;
use super::rounds::{self, Started};
use super::streamed_call::StreamedCall;
use super::transport::BoxFuture;

/// Call of a method, to be awaited for its result.
#[derive(Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<M> {
    client: Client,
    request: Request<'static>,
    options: Options,
    rounds: Rounds<M>,
}

impl<M: Method> Call<M> {
    /// Builds a call. `build` fills in the parameters; its error is reported when the call is awaited.
    pub(crate) fn new(
        client: &Client,
        build: impl FnOnce(&mut Request<'static>) -> Result<(), Error>,
    ) -> Self {
        let mut request = Request::new(M::NAME);
        let mut options = Options::default();
        if let Err(error) = build(&mut request) {
            options.fail(error);
        }
        Self { client: client.clone(), request, options, rounds: Rounds::default() }
    }

    options!();

    /// Sets a member of an object among the parameters.
    fn entry(mut self, member: &'static str, path: &[&str], key: String, value: String) -> Self {
        let mut object = self.request.get(member).map_or_else(|| serde_json::json!({}), Raw::to_value);
        let place = path.iter().fold(&mut object, |place, step| &mut place[*step]);
        place[key] = value.into();
        self.request.set(member, Some(object.into()));
        self
    }
}

impl<M: Method> IntoFuture for Call<M> {
    type Output = Result<M::Result, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, request, mut options, rounds } = self;
        Box::pin(async move { rounds::call(&client, request, &mut options, rounds).await })
    }
}

/// Settings of a call that may be asked something.
impl<M: MayAsk> Call<M> {
    rounds_options!();

    /// Sets the number of rounds that may ask something before the call is given up. The default is 10. The bound is
    /// checked before a handler is asked.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.rounds.limits.rounds = rounds;
        self
    }

    /// Sets the time that rounds without questions may take in all, in which the server only wants to be called again.
    /// The default is five minutes. A task that asks nothing but what was answered has as long; one that works has its time to
    /// live.
    pub fn max_polling(mut self, time: Duration) -> Self {
        self.rounds.limits.polling = time;
        self
    }

    /// Begins the call anew, from its first request and once, when the server no longer accepts the state of a round
    /// ([`StateRejected`](super::ServerRejection::StateRejected), for an older server
    /// [`CallNotOpen`](super::ApiMisuse::CallNotOpen)): the user took longer to answer than the state is valid, for one.
    ///
    /// Questions are asked again, and what the server did before the state expired it may do again: use this where that
    /// does no harm. The bounds of the call hold for all its rounds, those before the restart included. A call that is made
    /// [round by round](Self::one_round) is not begun anew: its caller sees the refusal.
    pub fn restart_when_refused(mut self) -> Self {
        self.rounds.restarts = true;
        self
    }

    /// Names the call, so that a server that looks for it can tell a request that comes twice from two requests; and
    /// sends a request again when the connection breaks ([`Resend::Always`](super::Resend::Always), unless [`resend`](Self::resend) says
    /// otherwise).
    ///
    /// The name goes out in `_meta` as `dev.roundtrip/idempotencyKey`, followed by a dot and the number of the request
    /// in this call, so every round has one of its own: `order-17.1`, `order-17.2`. Choose a key that no other call
    /// has.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.rounds.idempotency_key = Some(key.into());
        self
    }

    /// Makes one request and returns its outcome: the result, or a [`Pending`](super::Pending) that can be
    /// looked at, answered, stored, and [resumed](Client::resume) here or in another process. The client's handlers
    /// are left alone.
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client) -> Result<(), roundtrip::Error> {
    /// use roundtrip::Turn;
    /// use serde_json::json;
    ///
    /// let mut turn = client.call_tool("book_table", json!({ "restaurant": "Nopa" })).one_round().await?;
    /// while let Turn::Asked(pending) = turn {
    ///     turn = client.resume(pending.answer("party", json!({ "people": 2 }))?).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A tool may go on as a task: [`Turn::Task`](super::Turn::Task).
    ///
    /// A caller who takes questions by hand can put forms and web pages to the user, so these are declared whatever the
    /// handlers. Language models and roots are declared where handlers or [`Client::capabilities`] say so.
    pub fn one_round(self) -> OneRound<M> {
        OneRound::new(self.client, self.request, self.options, self.rounds)
    }
}

/// Calls of tools, whose results may come in parts, and which may become tasks.
impl Call<CallTool> {
    status_option!();

    /// Asks for the result in parts, and calls the hook with each as it comes. The result of the call is whole in any case; a server
    /// that does not send parts sends it alone, and where a connection broke on the way some parts may be missing.
    pub fn on_part(mut self, hook: impl FnMut(ContentBlock) + Send + 'static) -> Self {
        self.request.set("stream", Some(serde_json::json!({}).into()));
        self.options.on_part = Some(Box::new(hook));
        self
    }

    /// Asks for the result in parts, and makes the call a stream of them, with the result at its end. Questions go to the
    /// handlers.
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client) -> Result<(), roundtrip::Error> {
    /// let mut parts = client.call_tool("story", ()).parts();
    /// while let Some(part) = parts.next().await {
    ///     print!("{}", part.as_text().unwrap_or_default());
    /// }
    /// let whole = parts.result().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn parts(self) -> StreamedCall {
        StreamedCall::new(|hook| self.on_part(hook).into_future())
    }

    /// Asks for a task that is kept this long from its creation. Servers that speak the extension decide that alone; those of
    /// SEP-2322 and of 2025-11-25 keep it for at most this long.
    pub fn keep_for(mut self, time: Duration) -> Self {
        self.options.task.ttl = Some(time);
        self
    }

    /// Makes the call up to its end, or until it becomes a task of the server, which any process can then look after
    /// ([`Client::task`]). Questions that come before that go to the handlers. A server of 2025-11-25 leaves it to the client
    /// whether some of its tools run as tasks: with this they do, and inside the call otherwise.
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use roundtrip::client::Started;
    ///
    /// match client.call_tool("report", ()).into_task().await? {
    ///     Started::Done(result) => println!("{}", result.text()),
    ///     Started::Task(task) => println!("to be stored: {}", serde_json::to_string(&task)?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the call.
    pub async fn into_task(self) -> Result<Started, Error> {
        let Self { client, request, mut options, rounds } = self;
        options.task.is_wanted = true;
        rounds::start(&client, request, &mut options, rounds).await
    }
}

impl Call<GetPrompt> {
    /// Fills one of the prompt's gaps.
    pub fn argument(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.entry("arguments", &[], name.into(), value.into())
    }
}

impl Call<Complete> {
    /// Sets the value that another argument has already.
    pub fn context(self, argument: impl Into<String>, value: impl Into<String>) -> Self {
        self.entry("context", &["arguments"], argument.into(), value.into())
    }
}

impl Call<Discover> {
    /// Asks the server even where the last answer is still fresh.
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }
}

impl Call<ReadResource> {
    /// Asks the server even where the last answer is still fresh.
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }
}

//! [`Ask`]: extractor for questions, steps and checkpoints.

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use roundtrip_core::form::Form;
use roundtrip_core::round::read::Read;
use roundtrip_core::round::{Question, read};
use roundtrip_core::wire::{CreateMessageRequestParams, CreateMessageResult, ElicitSchema, JsonObject, Root};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::asking::Asking;
use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::needs::{AskStyle, Needs};
use super::once;
use super::tool_error::ToolError;
use crate::server::delivery::{AskKind, CannotAsk};
use crate::server::round::{AskError, Branch, Parked, RoundState};

type Text = Cow<'static, str>;

/// Extractor that asks the client, anywhere in a handler.
///
/// ```
/// # use roundtrip::{Args, Ask, Form, ToolError};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Booking { restaurant: String }
/// #[derive(Form)]
/// struct Party {
///     /// How many people?
///     #[form(min = 1, max = 12)]
///     people: u8,
/// }
///
/// async fn book(Args(booking): Args<Booking>, ask: Ask) -> Result<String, ToolError> {
///     let party: Party = ask.form("party", "How many people?").await?;
///     Ok(format!("{} for {}", booking.restaurant, party.people))
/// }
/// ```
///
/// An unanswered question ends the round with `input_required`: **the handler is dropped at that await, and runs again
/// from the top when the answer comes**, on the instance that receives it. Answers of earlier rounds are ready at once.
/// Effects that must not happen twice belong into [`once`](Self::once).
///
/// Questions awaited together (`tokio::try_join!`) are asked together. Every question and step has a key of its own.
#[derive(Debug, Clone)]
pub struct Ask {
    pub(super) round: Arc<RoundState>,
    pub(super) branch: Branch,
}

impl FromCall for Ask {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        Ok(Self { round: call.round_state()?, branch: call.resolvers.branch })
    }

    fn needs(needs: &mut Needs) {
        needs.asks(AskStyle::Inline);
    }
}

/// Questions that the client of this call can be asked: each is `Ok`, or the reason why not.
///
/// This takes into account the capabilities that the client declared, and the way a question would go: an earlier revision may
/// have no such question, and a call of one may have no session or stream to ask on.
///
/// ```
/// # use roundtrip::{Ask, ToolError};
/// async fn sign_in(ask: Ask) -> Result<String, ToolError> {
///     if let Err(why) = ask.may().url {
///         return Ok(format!("sign in at https://id.example first ({why})"));
///     }
///     ask.url("sign-in", "Please sign in", "https://id.example").await?;
///     Ok("signed in".into())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct May {
    /// Forms.
    pub form: Result<(), CannotAsk>,
    /// Forms with a field that takes several choices.
    pub multi_select: Result<(), CannotAsk>,
    /// Visits to web pages.
    pub url: Result<(), CannotAsk>,
    /// Completions by its model. Deprecated (SEP-2577).
    pub sample: Result<(), CannotAsk>,
    /// Completions by its model, with tools. Deprecated (SEP-2577).
    pub sample_with_tools: Result<(), CannotAsk>,
    /// Its roots. Deprecated (SEP-2577).
    pub roots: Result<(), CannotAsk>,
}

impl Ask {
    fn asking<T>(&self, question: Question, read: Read<T>) -> Asking<T> {
        Asking::new(&self.round, self.branch, question, read)
    }

    /// Asks the user to fill in a form.
    pub fn form<T: Form>(&self, key: impl Into<Text>, message: impl Into<Text>) -> Asking<T> {
        self.asking(Question::form::<T>(key, message), read::form)
    }

    /// Asks the user to fill in a form that is given by its schema, not by a type. Its defaults replace fields that were
    /// left out.
    pub fn form_of(
        &self,
        key: impl Into<Text>,
        message: impl Into<Text>,
        schema: ElicitSchema,
    ) -> Asking<JsonObject> {
        self.asking(Question::form_of(key, message, schema), read::content)
    }

    /// Asks the user to say yes or no.
    pub fn confirm(&self, key: impl Into<Text>, message: impl Into<Text>) -> Asking<bool> {
        self.asking(Question::confirm(key, message), read::yes_or_no)
    }

    /// Asks the user to open a web page. To accept is to consent, not to have finished there: wait for the end
    /// with [`until`](Self::until).
    pub fn url(&self, key: impl Into<Text>, message: impl Into<Text>, url: impl Into<String>) -> Asking<()> {
        self.asking(Question::url(key, message, url), read::consent)
    }

    /// Asks the client's model.
    ///
    /// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
    pub fn sample(
        &self,
        key: impl Into<Text>,
        request: CreateMessageRequestParams,
    ) -> Asking<CreateMessageResult> {
        self.asking(Question::sample(key, request), read::message)
    }

    /// Asks for the client's roots: the folders and files it works on.
    ///
    /// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
    pub fn roots(&self, key: impl Into<Text>) -> Asking<Vec<Root>> {
        self.asking(Question::roots(key), read::roots)
    }

    /// Returns what may be asked. Asking for anything else is an error that tells the client what is missing.
    pub fn may(&self) -> May {
        let may = |kind| self.round.may(kind);
        May {
            form: may(AskKind::Form),
            multi_select: may(AskKind::MultiSelect),
            url: may(AskKind::Url),
            sample: may(AskKind::Sample),
            sample_with_tools: may(AskKind::SampleWithTools),
            roots: may(AskKind::Roots),
        }
    }

    /// Returns the number of this round, counted from 1.
    pub fn round(&self) -> u32 {
        self.round.round().saturating_add(1)
    }

    /// Runs an effect, and remembers its result for every later round of this flow.
    ///
    /// While it runs, the handler is not dropped. A failure is forgotten, so that the next round tries again, unless
    /// it is [`remembered`](ToolError::remembered). Without a ledger, a reply that was lost on the way makes the
    /// client send the round again, and then the effect runs again: hand [`Step::idempotency_key`] to a
    /// downstream that deduplicates.
    ///
    /// # Errors
    /// Returns the error of the effect.
    ///
    /// [`Step::idempotency_key`]: once::Step::idempotency_key
    pub async fn once<T, E, F, Fut>(&self, key: impl AsRef<str>, effect: F) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
        F: FnOnce(once::Step) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        once::run((&self.round, self.branch), key.as_ref(), effect).await
    }

    /// Runs an effect that cannot fail, and remembers its value for every later round of this flow:
    /// [`once`](Self::once) without an error type.
    ///
    /// ```
    /// # use roundtrip::{Ask, ToolError};
    /// async fn raffle(ask: Ask) -> Result<String, ToolError> {
    ///     let ticket = ask.remember("ticket", async || draw()).await?;
    ///     let keep = ask.confirm("keep", format!("Keep number {ticket}?")).await?;
    ///     Ok(format!("{ticket}: {keep}"))
    /// }
    /// # fn draw() -> u32 { 7 }
    /// ```
    ///
    /// # Errors
    /// Fails as `once` does: if the key is used twice, or if the value does not survive being written down.
    pub async fn remember<T, F, Fut>(&self, key: impl AsRef<str>, effect: F) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        self.once(key, async |_| Ok::<T, ToolError>(effect().await)).await
    }

    /// Marks a place where the flow can move to another instance. This costs nothing, unless the server drains or sheds
    /// load: then the round ends here, with `requestState` and without a question, and the client's retry continues from
    /// here, on any instance. A client of the handshake eras does not retry: for its calls this does nothing.
    ///
    /// # Errors
    /// Fails if the key is used twice.
    pub async fn checkpoint(&self, key: impl AsRef<str>) -> Result<(), AskError> {
        let key = key.as_ref();
        match self.round.checkpoint(self.branch, key)? {
            None => Ok(()),
            Some(parked) => self.stay(key, parked).await,
        }
    }

    /// Ends the rounds of this call: from here on it is a task, and its reply names the task. The client asks for the result,
    /// and questions that follow are the task's own. Answers given so far are not asked for again.
    ///
    /// Where the call cannot be a task, or is one, this does nothing: the client did not declare the extension, or the tool has
    /// no [`task`](crate::Tool::task).
    ///
    /// # Errors
    /// Fails if the key is used twice.
    pub async fn detach(&self, key: impl AsRef<str>) -> Result<(), AskError> {
        let key = key.as_ref();
        if !self.round.detach(key)? {
            return Ok(());
        }
        poll_fn(|cx| {
            if !self.round.wants_to_detach() {
                return Poll::Ready(Ok(()));
            }
            match self.round.wait(key, cx) {
                Ok(()) => Poll::Pending,
                Err(closed) => Poll::Ready(Err(closed)),
            }
        })
        .await
    }

    /// Waits for something outside, such as the end of a visit to a web page: `look` runs once a round, and as long as it
    /// finds nothing the round ends with `requestState` alone, for the client to retry after a pause. The value it finds
    /// is remembered.
    ///
    /// # Errors
    /// Returns the error of `look`.
    pub async fn until<T, E, F, Fut>(&self, key: impl AsRef<str>, look: F) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Option<T>, E>>,
    {
        let key = key.as_ref();
        match once::look((&self.round, self.branch), key, look).await? {
            Some(found) => Ok(found),
            None => {
                self.stay(key, self.round.park(self.branch, key)).await?;
                Err(AskError::Closed.into())
            }
        }
    }

    /// Stays parked until the round ends, which drops the handler.
    async fn stay(&self, key: &str, _parked: Parked) -> Result<(), AskError> {
        poll_fn(|cx| match self.round.wait(key, cx) {
            Ok(()) => Poll::Pending,
            Err(closed) => Poll::Ready(Err(closed)),
        })
        .await
    }
}

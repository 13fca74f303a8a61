//! [`Asked`]: questions as parameters.

use std::fmt;

use roundtrip_core::round::{Answered, Askable, AskedAs, Question};
use roundtrip_core::wire::{JsonObject, json};
use serde_json::Value;

use super::asking::{Asking, accepted};
use super::call::{Arguments, Call, Rejection};
use super::extract::FromCall;
use super::function::Parameter;
use super::needs::{AskStyle, Needs};
use super::tool_error::ToolError;
use crate::server::round::AskError;

/// Extractor for the answer to a question: for handlers that need no logic between their questions.
///
/// The form gives the key and the message, which may name the call's arguments. All such parameters of a
/// handler are asked in one round, and its body runs once all of them are answered (A12). Two of one key, and a name in a
/// message that no argument has, are a [`SetupError`](crate::server::SetupError).
///
/// ```
/// # use roundtrip::{Args, Asked, Form, Tool};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Booking { restaurant: String }
/// #[derive(Form)]
/// #[form(key = "party", message = "How many people at {restaurant}?")]
/// struct Party { people: u8 }
///
/// #[derive(Form)]
/// #[form(key = "when", message = "Which day?")]
/// struct When { #[form(format = "date")] date: String }
///
/// async fn book(Args(booking): Args<Booking>, Asked(party): Asked<Party>, Asked(when): Asked<Option<When>>) -> String {
///     let day = when.map_or("any day".into(), |when| when.date);
///     format!("{} for {} on {day}", booking.restaurant, party.people)
/// }
/// # let _ = Tool::new("book", book);
/// ```
///
/// `Asked<T>` ends the call when the user refuses, `Asked<Option<T>>` gives `None`, and `Asked<Answered<T>>` tells
/// declined and dismissed apart. Consent to open a web page is an `Asked<`[`Visited`]`<P>>`. The client's roots are an `Asked<`[`Roots`]`>`, a message of its model is an
/// `Asked<`[`Sampled`]`<S>>`.
///
/// Questions of the body's own, by [`Ask`], follow in a later round. A parameter of type [`Asking<T>`] is not answered yet
/// when the body runs, which can ask it together with others:
///
/// ```
/// # use roundtrip::{Ask, Asking, Form, Tool, ToolError};
/// # #[derive(Form)]
/// # #[form(key = "party", message = "How many people?")]
/// # struct Party { people: u8 }
/// async fn book(party: Asking<Party>, ask: Ask) -> Result<String, ToolError> {
///     let (party, garden) = tokio::try_join!(party, ask.confirm("garden", "In the garden?"))?;
///     Ok(format!("{} people, garden: {garden}", party.people))
/// }
/// # let _ = Tool::new("book", book);
/// ```
///
/// [`Ask`]: crate::Ask
/// [`Roots`]: crate::server::Roots
/// [`Sampled`]: crate::server::Sampled
/// [`Visited`]: crate::server::Visited
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<T>(pub T);

/// A question that is going to be asked.
pub struct Wanted<T>(Asking<T, Answered<T>>);

impl<T: AskedAs> Parameter for Asked<T> {
    type Taken = Wanted<T::Answer>;
    const ASKS: bool = true;

    fn take(call: &mut Call<'_>) -> Result<Self::Taken, Rejection> {
        Ok(Wanted(question::<T::Answer>(call)?.answered()))
    }

    fn ready(_: Self::Taken) -> Option<Self> {
        None
    }

    async fn resolve(Wanted(asking): Self::Taken) -> Result<Self, ToolError> {
        match T::read(asking.await?) {
            Ok(value) => Ok(Self(value)),
            Err(refusal) => Err(refused(refusal, T::Answer::KEY).into()),
        }
    }

    fn needs(needs: &mut Needs) {
        needs.asks(AskStyle::Before);
        needs.asked::<T::Answer>();
    }
}

/// Extractor for a question that the body awaits itself.
impl<T: Askable> FromCall for Asking<T> {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        question(call)
    }

    fn needs(needs: &mut Needs) {
        needs.asks(AskStyle::Inline);
        needs.asked::<T>();
    }
}

fn question<T: Askable>(call: &mut Call<'_>) -> Result<Asking<T>, Rejection> {
    let question = Question::new(T::KEY, T::asks(&|| arguments(call)));
    Ok(Asking::new(&call.round_state()?, call.resolvers.branch, question, T::READ))
}

fn refused<T>(refusal: Answered<T>, key: &str) -> AskError {
    // It is a refusal, so no value is lost here.
    accepted(refusal, key).err().unwrap_or(AskError::Closed)
}

/// Returns the call's arguments, for the text of a question.
fn arguments(call: &Call<'_>) -> JsonObject {
    match &call.arguments {
        Arguments::Text(raw) => raw.and_then(|raw| json::from_str(raw.get()).ok()).unwrap_or_default(),
        Arguments::Value(value) => value.as_object().cloned().unwrap_or_default(),
        Arguments::Strings(pairs) => {
            pairs.iter().map(|(name, value)| (name.to_string(), Value::from(value.as_ref()))).collect()
        }
        // A completer cannot ask.
        Arguments::Typed(_) => JsonObject::new(),
    }
}

impl<T> fmt::Debug for Wanted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wanted").field(&self.0).finish()
    }
}

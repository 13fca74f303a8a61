//! The user who answers questions, with a model and some folders.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roundtrip::client::{Misfit, Origin, RootsRequest};
use roundtrip::wire::{CreateMessageResult, Root};
use roundtrip::{Client, FormAnswer, FormRequest, SampleRequest, UrlAnswer, UrlRequest};
use serde_json::{Value, json};

/// Reaction of the user to a form or a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Answers.
    Accept,
    /// Says no.
    Decline,
    /// Closes the form.
    Cancel,
}

impl Act {
    /// Returns the `action` on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// Answers every question, and records it.
#[derive(Debug, Clone, Default)]
pub struct User(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    acts: VecDeque<Act>,
    asked: Vec<String>,
}

impl User {
    /// Reacts this way to the first forms and pages, in turn; then accepts.
    pub fn who(acts: impl IntoIterator<Item = Act>) -> Self {
        Self(Arc::new(Mutex::new(Inner { acts: acts.into_iter().collect(), asked: Vec::new() })))
    }

    /// Returns every question so far, with the round it came in. The questions of one round arrive in any order, so
    /// they are sorted.
    pub fn asked(&self) -> Vec<String> {
        let mut asked = self.lock().asked.clone();
        asked.sort();
        asked
    }

    /// Returns every question so far, sorted, without its round.
    pub fn questions(&self) -> Vec<String> {
        let mut asked: Vec<String> =
            self.lock().asked.iter().filter_map(|asked| Some(asked.split_once(' ')?.1.to_owned())).collect();
        asked.sort();
        asked
    }

    /// Answers the questions of a client.
    pub fn at(&self, client: &Client) -> Client {
        let [forms, pages, model, folders] = [(); 4].map(|()| self.clone());
        client
            .clone()
            .on_form(move |form: FormRequest| std::future::ready(forms.form(&form)))
            .on_url(move |page: UrlRequest| std::future::ready(pages.page(&page)))
            .on_sample(move |asked: SampleRequest| std::future::ready(model.sample(&asked)))
            .on_roots(move |asked: RootsRequest| std::future::ready(folders.folders(&asked)))
    }

    fn form(&self, form: &FormRequest) -> Result<FormAnswer, Misfit> {
        match self.act(&form.origin, &form.message) {
            // This has more fields than any form: those not asked for must be left out.
            Act::Accept => form.accept(everything()),
            Act::Decline => Ok(form.decline()),
            Act::Cancel => Ok(form.cancel()),
        }
    }

    fn page(&self, page: &UrlRequest) -> UrlAnswer {
        match self.act(&page.origin, &format!("{} at {}", page.message, page.url)) {
            Act::Accept => page.consent(),
            Act::Decline => page.decline(),
            Act::Cancel => page.cancel(),
        }
    }

    fn sample(&self, asked: &SampleRequest) -> Result<CreateMessageResult, serde_json::Error> {
        self.note(&asked.origin, &format!("the model, {} tokens", asked.params.max_tokens));
        serde_json::from_value(paris())
    }

    fn folders(&self, asked: &RootsRequest) -> Vec<Root> {
        self.note(&asked.origin, "the roots");
        folders()
    }

    fn act(&self, origin: &Origin, message: &str) -> Act {
        self.note(origin, message);
        self.lock().acts.pop_front().unwrap_or(Act::Accept)
    }

    fn note(&self, origin: &Origin, what: &str) {
        self.lock().asked.push(format!("{} {what}", origin.round));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns values for the fields of every form.
pub fn everything() -> Value {
    json!({
        "name": "Ada", "email": "ada@example.com", "age": 36, "score": 9.5, "colour": "teal",
        "toppings": ["cheese", "olives"], "topic": "tides", "ok": true,
    })
}

/// Returns the model's answer to any prompt.
pub fn paris() -> Value {
    json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "none" })
}

/// Returns the user's folders.
pub fn folders() -> Vec<Root> {
    ["file:///project", "file:///notes"].map(|uri| Root { uri: uri.into(), ..Root::default() }).into()
}

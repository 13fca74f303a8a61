//! Pages of a sign-in: shown, consented to in the middle of a call, and opened.

use std::sync::{Arc, Mutex, PoisonError};

use anstyle::Style;
use roundtrip::oauth::{DevicePending, HttpUrl};

use crate::ask::{page, terminal};
use crate::exit::{Exit, Failure};
use crate::output::err;
use crate::printable::printable;
use crate::rows::Screen;

/// Consent of the user to a sign-in in the middle of a call.
#[derive(Clone)]
pub(crate) struct Consent {
    /// Address by which the server was reached.
    label: String,
    /// Clears the display of the call.
    clear: Arc<dyn Fn() + Send + Sync>,
    /// Reason the user did not consent.
    refusal: Refusal,
}

/// Slot for the reason a user did not consent: the library has nothing but a text for it.
pub(crate) type Refusal = Arc<Mutex<Option<Failure>>>;

impl Consent {
    pub(crate) fn new(label: String, clear: Arc<dyn Fn() + Send + Sync>, refusal: Refusal) -> Self {
        Self { label, clear, refusal }
    }

    /// Asks for consent, and opens the page.
    pub(super) async fn open(self, url: HttpUrl) -> Result<(), String> {
        (self.clear)();
        let bold = Style::new().bold();
        let lead = format!("{bold}{}{bold:#} wants a sign-in", printable(&self.label));
        err!("{}", Screen::Err.rows(&lead, &format!("{}:", scopes(&url))));
        let page = url.clone();
        let consent = terminal::prompted(move || page::ask_to_sign_in(page.as_str())).await;
        let consent = consent.and_then(|consents| {
            if consents { Ok(()) } else { Err(Failure::new(Exit::Declined, "the sign-in was declined")) }
        });
        match consent {
            Ok(()) => opened(url).await,
            Err(failure) => {
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                Err("the user does not want it".to_owned())
            }
        }
    }
}

/// Shows the page of a sign-in that the user has asked for, and opens it.
pub(crate) async fn show_and_open(url: HttpUrl) -> Result<(), String> {
    err!("{}", Screen::Err.rows("Sign in with the browser", &format!("{}:", scopes(&url))));
    page::show(url.as_str());
    opened(url).await
}

/// Shows the code of a sign-in that is finished elsewhere.
pub(crate) async fn show_code(code: DevicePending) -> Result<(), String> {
    let bold = Style::new().bold();
    let text = format!("{bold}{}{bold:#} at:", printable(code.user_code()));
    err!("{}", Screen::Err.rows("Enter the code ", &text));
    page::show(code.url().as_str());
    Ok(())
}

/// Opens the browser. A user at a terminal can do it, too.
async fn opened(url: HttpUrl) -> Result<(), String> {
    let opened = page::open(url.as_str().to_owned()).await;
    if opened || terminal::is_there() { Ok(()) } else { Err("sign in with `--paste`".to_owned()) }
}

/// Returns the scopes that a sign-in asks for, as a part of a sentence.
fn scopes(url: &HttpUrl) -> String {
    let url = reqwest::Url::parse(url.as_str()).ok();
    let pairs = url.as_ref().map(reqwest::Url::query_pairs);
    match pairs.into_iter().flatten().find(|(name, _)| name == "scope") {
        Some((_, scopes)) if !scopes.is_empty() => format!(", for {}", printable(&scopes)),
        _ => String::new(),
    }
}

//! The client of one command: with the tokens of its server, and closed in the end.

use std::sync::{Arc, PoisonError};

use roundtrip::Client;

use super::{Connect, Endpoint};
use crate::ask::terminal;
use crate::exit::{Exit, Failure};
use crate::interrupt::{self, Deadline};
use crate::progress::Progress;
use crate::sign_in::{Consent, Refusal, SignedIn};

/// Client of a server that the command line names.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) endpoint: Endpoint,
    deadline: Option<Deadline>,
    /// True if a header has the credentials.
    has_header: bool,
    /// Reason the user did not consent to a sign-in.
    refusal: Refusal,
    progress: Progress,
}

impl Connection {
    /// Builds the client, which has the tokens that are stored for the server. Nothing is sent yet. Ctrl-C and the deadline
    /// end prompts for values of a file.
    pub(crate) async fn open(
        endpoint: Endpoint,
        options: &Connect,
        deadline: Option<Deadline>,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        interrupt::until(deadline, Self::opened(endpoint, options, deadline, progress)).await
    }

    async fn opened(
        endpoint: Endpoint,
        options: &Connect,
        deadline: Option<Deadline>,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let (client, url) = endpoint.client(options).await?;
        let (has_header, refusal, progress) = (url.is_none(), Refusal::default(), progress.clone());
        let mut this = Self { client, endpoint, deadline, has_header, refusal, progress };
        let signed_in = match url {
            Some(url) => SignedIn::find(&url).await.map_err(|failure| this.explained(failure))?,
            None => None,
        };
        if let Some(signed_in) = signed_in {
            let clear = Arc::new(this.progress.clearing());
            let consent = || Consent::new(this.endpoint.label(), clear, Arc::clone(&this.refusal));
            this.client = this.client.oauth(signed_in.oauth(terminal::is_there().then(consent)));
        }
        Ok(this)
    }

    /// Waits for work, in sight, and closes the client however it ends. Ctrl-C and the deadline end the work, and Ctrl-C,
    /// once more, the closing.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let seen = async {
            self.progress.wait_for(&format!("connecting to {}", self.endpoint.label()));
            work.await
        };
        let result = interrupt::until(self.deadline, seen).await;
        self.progress.clear();
        // Closing waits for tokens that were asked for.
        let _ = interrupt::unless_insisted(self.client.close()).await;
        result.map_err(|failure| self.explained(failure))
    }

    /// Adds how to sign in to an error that wants it.
    fn explained(&self, failure: Failure) -> Failure {
        if let Some(refusal) = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return refusal;
        }
        if failure.exit != Exit::SignIn {
            return failure;
        }
        if self.has_header {
            return failure.note("the credentials that a header gives are not enough");
        }
        let mut login = self.endpoint.words("login");
        let scope = failure.scope().map(str::to_owned).unwrap_or_default();
        if !scope.is_empty() {
            login = format!("{login} --scope {}", super::quoted(&scope));
        }
        failure.note_with(&scope, format!("sign in with `{login}`")).with("login", login)
    }
}

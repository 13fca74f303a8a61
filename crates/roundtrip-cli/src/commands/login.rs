//! `roundtrip login`: signs in to a server, and keeps the tokens.

use clap::Args;
use roundtrip::client::{ApiMisuse, PeerMisbehaved};
use roundtrip::oauth::{AuthError, OAuth, Secret};
use roundtrip::{Client, Error};

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::err;
use crate::printable::printable;
use crate::rows::Screen;
use crate::server::{Connect, Endpoint, address};
use crate::sign_in::{self, NAME, NewSignIn, paste, registered};

/// Sign in to a server, and keep the tokens for later commands
#[derive(Args)]
#[command(
    override_usage = "roundtrip login [OPTIONS] <SERVER>",
    after_help = "Tokens are kept in the keyring of the operating system, or in files where there is none. Every command\n\
                  for this server uses and renews them.\n\n\
                  Examples:\n  roundtrip login https://tools.example/mcp\n  \
                  roundtrip login --paste https://tools.example/mcp          # on a machine without a browser\n  \
                  CLIENT_SECRET=.. roundtrip login https://tools.example/mcp \\\n      \
                  --client-id my-client --client-secret-env CLIENT_SECRET --issuer https://login.example"
)]
pub(crate) struct Login {
    /// URL of the server, or its name with `--config`
    server: String,
    /// Print the page to open anywhere, and read the address that the browser ends at
    #[arg(long)]
    paste: bool,
    /// Print a code to enter in a browser anywhere, where the issuer offers that
    #[arg(long, conflicts_with = "paste")]
    device: bool,
    /// Scope to ask for, beside those that the server wants
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ' ')]
    scopes: Vec<String>,
    /// Client that was registered with `--issuer` by hand
    #[arg(long, value_name = "ID", requires = "issuer")]
    client_id: Option<String>,
    /// Variable of the environment with the secret of that client, which goes to `--issuer` alone
    #[arg(long, value_name = "NAME", requires = "client_id")]
    client_secret_env: Option<String>,
    /// URL of a document that describes the client (`roundtrip client-metadata`), for issuers that take those
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    client_metadata: Option<String>,
    /// Sign in with this issuer: where the server names none, names several, or has one in a private network
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Keep the tokens in a file, and not in the keyring
    #[arg(long)]
    file: bool,
    #[command(flatten)]
    connect: Connect,
}

impl Login {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut vec![self.server.clone()], &[], self.connect.config.as_ref())?;
        for url in self.issuer.iter().chain(&self.client_metadata) {
            address::check(url).map_err(Failure::usage)?;
        }
        let (client, url, new) = interrupt::until(None, self.begun(&endpoint)).await?;
        let done = interrupt::until(None, self.done(&client, &new)).await;
        let is_over = matches!(&done, Err(failure) if failure.exit != Exit::Interrupted);
        let kept = interrupt::unless_insisted(self.kept(&client, &new, is_over)).await;
        let issuer = match (done, kept.unwrap_or_else(|| Err(Failure::interrupted()))) {
            (Ok(issuer), Ok(_)) => issuer,
            (Err(failure), Ok(true)) => {
                let place = new.kept_in();
                return Err(failure.note(format!("the tokens came all the same, and are kept in {place}")));
            }
            (Err(failure), _) | (Ok(_), Err(failure)) => return Err(failure),
        };
        let by = printable(&format!(", by {issuer}"));
        err!("{}", Screen::Err.rows(&format!("signed in to {}", printable(&url)), &by));
        err!("the tokens are kept in {}", printable(&new.kept_in()));
        Ok(())
    }

    /// Builds the client, and finds the place for its tokens. Nothing is sent yet.
    async fn begun(&self, endpoint: &Endpoint) -> Result<(Client, String, NewSignIn), Failure> {
        let (client, url) = endpoint.client(&self.connect).await?;
        let url = match url {
            Some(url) => url,
            None => {
                endpoint.url().await?;
                return Err(Failure::usage("a header has the credentials already: leave it out to sign in"));
            }
        };
        let secret = self.client_secret()?;
        let new = NewSignIn::begin(&url, self.file, secret.clone()).await?;
        let client = client.oauth(self.oauth(secret).store(new.store()));
        Ok((client, url, new))
    }

    /// Closes the client, which waits for tokens that were asked for: a code is good for one use. Notes where they are, though the
    /// user may have interrupted the sign-in meanwhile, unless it has failed. Returns whether they are kept.
    async fn kept(&self, client: &Client, new: &NewSignIn, is_over: bool) -> Result<bool, Failure> {
        client.close().await;
        if is_over || new.grant().await?.is_none() {
            return Ok(false);
        }
        new.finish(self.issuer.clone()).await?;
        Ok(true)
    }

    /// Signs in, and returns the issuer.
    async fn done(&self, client: &Client, new: &NewSignIn) -> Result<String, Failure> {
        // A refusal says best which scopes are wanted.
        let mut begun = client.discover().await.map(drop);
        if matches!(begun, Ok(()) | Err(Error::Rejected(_))) && new.grant().await?.is_none() {
            begun = client.begin_sign_in().await;
        }
        match begun {
            Err(Error::SignIn(pending)) => paste(client, &pending).await?,
            Err(error) => return Err(advised(error)),
            Ok(()) => {}
        }
        let grant = new.grant().await?;
        let grant = grant.ok_or_else(|| Failure::new(Exit::SignIn, "the sign-in gave no tokens"))?;
        Ok(grant.terms.issuer)
    }

    fn client_secret(&self) -> Result<Option<Secret>, Failure> {
        let read = |name: &String| {
            let secret = std::env::var(name);
            secret.map(Secret::new).map_err(|_| Failure::usage(format!("the variable {name} is not set")))
        };
        self.client_secret_env.as_ref().map(read).transpose()
    }

    /// Returns the settings of the sign-in.
    fn oauth(&self, secret: Option<Secret>) -> OAuth {
        let mut oauth = match &self.client_id {
            Some(id) => registered(id, secret, self.issuer.as_deref()),
            None => OAuth::new(NAME),
        };
        if let Some(url) = &self.client_metadata {
            oauth = oauth.client_metadata(url);
        }
        if let Some(issuer) = &self.issuer {
            oauth = oauth.server_issuer(issuer);
        }
        if !self.scopes.is_empty() {
            oauth = oauth.scopes(&self.scopes);
        }
        if self.device {
            oauth.device(sign_in::show_code)
        } else if self.paste {
            oauth
        } else {
            oauth.browser(sign_in::show_and_open)
        }
    }
}

/// Adds the option that helps against an error.
fn advised(error: Error) -> Failure {
    let advice = match &error {
        Error::PeerMisbehaved(PeerMisbehaved::Authorization(error))
        | Error::ApiMisuse(ApiMisuse::Authorization(error)) => advice(error),
        // The browser was not opened, which is all that can go wrong on our side.
        Error::Handler(why) => return Failure::new(Exit::SignIn, why.to_string()),
        _ => None,
    };
    let failure = Failure::from(error);
    match advice {
        Some(advice) => failure.note(advice),
        None => failure,
    }
}

fn advice(error: &AuthError) -> Option<&'static str> {
    match error {
        AuthError::NoRegistration(_) => {
            Some("give the client id by `--client-id` and `--issuer`, or host `roundtrip client-metadata`")
        }
        AuthError::ClientAuthentication { .. } => {
            Some("give the client by `--client-id`, `--client-secret-env` and `--issuer`")
        }
        AuthError::NoResourceMetadata(_) | AuthError::NoAuthorizationServer => {
            Some("if the server wants a sign-in, give its issuer by `--issuer`")
        }
        AuthError::NoIss(_) | AuthError::Issuer { .. } => {
            Some("if you trust this issuer, give it by `--issuer`")
        }
        _ => None,
    }
}

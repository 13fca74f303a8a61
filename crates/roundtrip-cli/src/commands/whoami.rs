//! `roundtrip whoami`: shows a sign-in, without its tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use roundtrip::oauth::{Grant, Secret};
use roundtrip::wire::json;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{self, out};
use crate::printable::printable;
use crate::rows::Screen;
use crate::server::NamedServer;
use crate::sign_in::{Place, SignedIn};

/// Show who is signed in to a server: nothing is sent, and no token is shown
#[derive(Args)]
#[command(after_help = "Example:\n  roundtrip whoami https://tools.example/mcp")]
pub(crate) struct Whoami {
    #[command(flatten)]
    server: NamedServer,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Whoami {
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        let endpoint = self.server.endpoint()?;
        let find = async { SignedIn::find(&endpoint.url().await?).await };
        let found = interrupt::until(None, find).await?;
        let Some(signed_in) = found else {
            let login = endpoint.words("login");
            let failure = Failure::new(Exit::SignIn, "not signed in");
            return Err(failure.note(format!("sign in with `{login}`")).with("login", login));
        };
        if self.json {
            output::json(&as_json(&signed_in));
        } else {
            show(&signed_in);
        }
        Ok(())
    }
}

fn as_json(signed_in: &SignedIn) -> Value {
    let grant = &signed_in.grant;
    json!({
        "server": signed_in.server,
        "issuer": grant.terms.issuer,
        "subject": subject(&grant.access_token),
        "scopes": grant.granted.iter().collect::<Vec<_>>(),
        "expiresAt": grant.expires_at,
        "isRenewable": grant.refresh_token.is_some(),
        "clientId": grant.terms.client.client_id,
        "keptIn": match signed_in.place() { Place::Keyring => "keyring", Place::File => "file" },
    })
}

fn show(signed_in: &SignedIn) {
    let grant = &signed_in.grant;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let scopes = grant.granted.to_string();
    out!("server   {}", printable(signed_in.server.as_str()));
    let row = |lead: &str, text: &str| out!("{}", Screen::Out.rows(lead, &printable(text)));
    row("issuer   ", &grant.terms.issuer);
    if let Some(subject) = subject(&grant.access_token) {
        row("subject  ", &subject);
    }
    row("scopes   ", if scopes.is_empty() { "none" } else { &scopes });
    out!("expires  {}", expiry(grant, now));
    row("client   ", &grant.terms.client.client_id);
    out!("kept in  {}", signed_in.kept_in());
}

/// Describes the end of the access token.
fn expiry(grant: &Grant, now: u64) -> String {
    let next = match grant.refresh_token {
        Some(_) => "a call renews it",
        None => "then a sign-in is needed",
    };
    match grant.expires_at {
        None => "the issuer does not say".to_owned(),
        Some(end) if end > now => format!("in {}; {next}", span(end - now)),
        Some(end) => format!("{} ago; {next}", span(now - end)),
    }
}

/// Writes a span of time in its greatest unit that is not coarse.
fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "seconds"),
        120..7_200 => (seconds / 60, "minutes"),
        7_200..172_800 => (seconds / 3_600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{count} {unit}")
}

/// Returns the subject that an access token names, if it is a JWT. It is not verified: it is for people, and decides nothing.
fn subject(token: &Secret) -> Option<String> {
    let mut parts = token.expose().split('.');
    let (_, claims, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let claims: Value = json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_read_from_a_jwt_alone() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"sub":"alice"}"#);
        let subject_of = |token: &str| subject(&token.into());
        assert_eq!(subject_of(&format!("head.{claims}.signature")), Some("alice".to_owned()));
        for other in ["opaque", "a.b.c", "", &format!("{claims}.x"), &format!("a.{claims}.b.c")] {
            assert_eq!(subject_of(other), None, "{other}");
        }
    }

    #[test]
    fn spans_are_short() {
        let spans = [0, 119, 120, 7_199, 7_200, 172_799, 172_800].map(span);
        let expected =
            ["0 seconds", "119 seconds", "2 minutes", "119 minutes", "2 hours", "47 hours", "2 days"];
        assert_eq!(spans, expected);
    }
}

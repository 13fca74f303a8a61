//! Introspection by the author's own function: for tokens that look like JWTs and do not name their subject.

use std::error::Error;
use std::pin::Pin;
use std::time::{Duration, UNIX_EPOCH};

use roundtrip::authorize::Verified;
use roundtrip::oauth::Secret;
use serde_json::Value;

type Failure = Box<dyn Error + Send + Sync>;
type Verdict = Pin<Box<dyn Future<Output = Result<Option<Verified>, Failure>> + Send>>;

/// Returns a function that asks an issuer about tokens, at a path, with credentials of this server's.
pub(crate) fn at(
    issuer: &str,
    [path, client, secret]: [&str; 3],
) -> impl Fn(Secret) -> Verdict + Send + Sync + 'static {
    let (url, client, secret) = (format!("{issuer}{path}"), client.to_owned(), secret.to_owned());
    let http = reqwest::Client::new();
    move |token: Secret| -> Verdict {
        let request = http.post(&url).basic_auth(&client, Some(&secret));
        // The tokens that come here have no character that a form would write otherwise.
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let request = request.body(format!("token={}", token.expose()));
        Box::pin(async move {
            let answer = request.send().await?.error_for_status()?.bytes().await?;
            Ok(verified(&serde_json::from_slice(&answer)?))
        })
    }
}

fn verified(answer: &Value) -> Option<Verified> {
    if answer["active"] != true {
        return None;
    }
    let end = Duration::try_from_secs_f64(answer["exp"].as_f64()?).ok()?;
    let mut verified = Verified::new(answer["iss"].as_str()?, answer["sub"].as_str()?)
        .client_id(answer["client_id"].as_str()?)
        .scopes(answer["scope"].as_str()?.split(' '))
        .expires_at(UNIX_EPOCH + end);
    for audience in answer["aud"].as_array()? {
        verified = verified.audience(audience.as_str()?);
    }
    Some(verified)
}

//! The authorization server, as the checks look at it and set it.

use roundtrip_interop::report::Failure;
use serde_json::Value;

/// Name of the authorization server.
pub(crate) fn name() -> Result<String, Failure> {
    Ok(std::env::var("ISSUER")?)
}

/// Returns how many exchanges of a grant type the authorization server has made.
pub(crate) async fn exchanges(grant: &str) -> Result<u64, Failure> {
    let counts = get(&format!("{}/-/exchanges", name()?)).await?;
    Ok(counts[grant].as_u64().unwrap_or(0))
}

/// Sets the life of the tokens that are issued from now on.
pub(crate) async fn set_seconds(seconds: u64) -> Result<(), Failure> {
    get(&format!("{}/-/seconds/{seconds}", name()?)).await.map(drop)
}

async fn get(url: &str) -> Result<Value, Failure> {
    let answer = reqwest::get(url).await?.error_for_status()?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

/// Returns a token for another resource, of a client that has a secret.
pub(crate) async fn foreign_token() -> Result<String, Failure> {
    let body = "grant_type=client_credentials&client_id=machine&client_secret=machine-secret\
                &scope=mcp%3Aread&resource=https%3A%2F%2Fother.example%2Fmcp";
    let request = reqwest::Client::new().post(format!("{}/token", name()?)).body(body);
    let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await?;
    let answer: Value = serde_json::from_slice(&answer.error_for_status()?.bytes().await?)?;
    Ok(answer["access_token"].as_str().ok_or("no token")?.to_owned())
}

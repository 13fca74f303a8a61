//! A person signs in with a browser, tokens are renewed, and more scopes are got.

use std::time::Duration;

use roundtrip::client::PeerMisbehaved;
use roundtrip::oauth::OAuth;
use roundtrip::{Client, Error};
use roundtrip_interop::browser::visit;
use roundtrip_interop::report::{Failure, Report, expect};

use crate::person::{ALICE, Person};
use crate::{call, is_called, issuer};

/// Life of tokens that are to be renewed, in seconds. Half of it goes by before they are; some issuers let the refresh token end
/// with them.
const SHORT: u64 = 8;

/// Returns a sign-in by one of the ways in which a client gets its id: `dcr`, `registered`, `secret` or `cimd`.
pub(crate) fn sign_in(way: &str) -> Result<OAuth, Failure> {
    Ok(match way {
        "dcr" => OAuth::new("Roundtrip"),
        "registered" => OAuth::registered("registered").issuer(issuer::name()?),
        "secret" => OAuth::registered("confidential").secret("confidential-secret").issuer(issuer::name()?),
        "cimd" => OAuth::new("Roundtrip").client_metadata(std::env::var("CLIENT_METADATA")?),
        other => return Err(format!("no such way: {other}").into()),
    })
}

/// Signs in, renews and steps up, at an authorization server that tells what it exchanged.
pub(crate) async fn check(report: &mut Report, url: &str, way: &str) -> Result<(), Failure> {
    let person = Person::default();
    let client = Client::http(url)?.oauth(person.at(sign_in(way)?));
    issuer::set_seconds(SHORT).await?;
    report.check(&format!("signs in ({way})"), signs_in(&client, &person)).await;
    report.check(&format!("renews ({way})"), renews(&client, &person)).await;
    issuer::set_seconds(300).await?;
    report.check(&format!("steps up ({way})"), steps_up(&client, &person)).await;
    report.check(&format!("signs out ({way})"), signs_out(&client, &person)).await;
    client.close().await;
    Ok(())
}

/// Signs in and calls, at a server or an authorization server that tells nothing.
pub(crate) async fn calls(report: &mut Report, url: &str, way: &str) -> Result<(), Failure> {
    let person = Person::default();
    let client = Client::http(url)?.oauth(person.at(sign_in(way)?));
    report.check(&format!("signs in ({way})"), signs_in(&client, &person)).await;
    report
        .check("calls again", async {
            is_called(&client, ALICE).await?;
            expect(person.visits() == 1, || format!("{} visits of the browser", person.visits()))?;
            Ok("with the same token".into())
        })
        .await;
    client.close().await;
    Ok(())
}

/// Signs in without a listener: the person copies the URL that the browser ends at.
pub(crate) async fn pasted(report: &mut Report, url: &str, way: &str) -> Result<(), Failure> {
    let client = Client::http(url)?.oauth(sign_in(way)?);
    report
        .check(&format!("signs in by a pasted URL ({way})"), async {
            let Err(Error::SignIn(pending)) = call(&client, "whoami").await else {
                return Err("no sign-in was needed".into());
            };
            let came_back = visit(ALICE, &[pending.url().as_str()]).await?;
            client.sign_in(pending.answered(&came_back)?).await?;
            is_called(&client, ALICE).await?;
            Ok(format!("as {ALICE}"))
        })
        .await;
    client.close().await;
    Ok(())
}

/// O61: an authorization server without PKCE in its metadata is refused, before a browser opens.
pub(crate) async fn refused(report: &mut Report, url: &str) -> Result<(), Failure> {
    let person = Person::default();
    let client = Client::http(url)?.oauth(person.at(sign_in("dcr")?));
    report
        .check("refuses an issuer without PKCE", async {
            let error = match call(&client, "whoami").await {
                Err(Error::PeerMisbehaved(PeerMisbehaved::Authorization(error))) => error.to_string(),
                other => return Err(format!("{other:?}").into()),
            };
            expect(error.contains("S256"), || error.clone())?;
            expect(person.visits() == 0, || "the browser was opened".to_owned())?;
            Ok(error)
        })
        .await;
    Ok(())
}

async fn signs_in(client: &Client, person: &Person) -> Result<String, Failure> {
    is_called(client, ALICE).await?;
    expect(person.visits() == 1, || format!("{} visits of the browser", person.visits()))?;
    Ok(format!("as {ALICE}"))
}

/// Calls until the token is due, and looks who calls then.
async fn renews(client: &Client, person: &Person) -> Result<String, Failure> {
    let before = issuer::exchanges("refresh_token").await?;
    while issuer::exchanges("refresh_token").await? == before {
        tokio::time::sleep(Duration::from_millis(200)).await;
        is_called(client, ALICE).await?;
    }
    is_called(client, ALICE).await?;
    expect(person.visits() == 1, || format!("{} visits of the browser", person.visits()))?;
    Ok("without the person".into())
}

async fn steps_up(client: &Client, person: &Person) -> Result<String, Failure> {
    let said = call(client, "write").await?;
    expect(said == format!("written by {ALICE}"), || said.clone())?;
    expect(person.visits() == 2, || format!("{} visits of the browser", person.visits()))?;
    is_called(client, ALICE).await?;
    Ok("one call, one more visit".into())
}

async fn signs_out(client: &Client, person: &Person) -> Result<String, Failure> {
    client.sign_out().await?;
    is_called(client, ALICE).await?;
    expect(person.visits() == 3, || format!("{} visits of the browser", person.visits()))?;
    Ok("the next call signs in anew".into())
}

//! Grants without a browser of the client's own: client credentials and codes of devices; tokens that are bound to a key.

use roundtrip::oauth::{ClientAuthMethod, OAuth};
use roundtrip::{Client, Error};
use roundtrip_interop::report::{Failure, Report, expect};

use crate::person::{ALICE, Person};
use crate::{call, is_called, issuer};

/// O92: client credentials, with the secret in the header, in the body, and with a key.
pub(crate) async fn machine(report: &mut Report, url: &str) -> Result<(), Failure> {
    let issuer = issuer::name()?;
    let with_secret = |id: &str| OAuth::machine(id).secret(format!("{id}-secret")).issuer(&issuer);
    let mut ways = vec![
        ("in the header", "machine", with_secret("machine").auth_method(ClientAuthMethod::ClientSecretBasic)),
        ("in the body", "poster", with_secret("poster").auth_method(ClientAuthMethod::ClientSecretPost)),
    ];
    if let Ok(pem) = std::env::var("MACHINE_KEY") {
        let by_key = OAuth::machine("keyed").key(std::fs::read_to_string(pem)?)?.issuer(&issuer);
        ways.push(("by a key", "keyed", by_key));
    }
    for (how, id, sign_in) in ways {
        let client = Client::http(url)?.oauth(sign_in);
        report
            .check(&format!("client credentials {how}"), async {
                is_called(&client, id).await?;
                Ok(format!("as {id}"))
            })
            .await;
        client.close().await;
    }
    Ok(())
}

/// O18: a token of the same issuer for another resource is refused.
pub(crate) async fn foreign(report: &mut Report, url: &str) -> Result<(), Failure> {
    report
        .check("a token for another resource", async {
            let token = issuer::foreign_token().await?;
            let client = Client::http(url)?.header("authorization", format!("Bearer {token}"));
            match call(&client, "whoami").await {
                Err(Error::Refused(refusal)) if refusal.status == 401 => Ok("401".into()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    Ok(())
}

/// O97: the code of a device, entered in a browser elsewhere.
pub(crate) async fn device(report: &mut Report, url: &str) -> Result<(), Failure> {
    let person = Person::default();
    let sign_in = OAuth::registered("device").issuer(issuer::name()?);
    let client = Client::http(url)?.oauth(person.entering(sign_in));
    report
        .check("the code of a device", async {
            is_called(&client, ALICE).await?;
            expect(person.visits() == 1, || format!("{} codes", person.visits()))?;
            Ok("as alice".into())
        })
        .await;
    client.close().await;
    Ok(())
}

/// O96: tokens bound to a key, at a server that wants proofs.
pub(crate) async fn bound(report: &mut Report, url: &str) -> Result<(), Failure> {
    let person = Person::default();
    let client = Client::http(url)?.oauth(person.at(OAuth::new("Roundtrip").dpop()));
    report
        .check("lists with proofs of possession", async {
            let tools = client.list_tools().await?;
            expect(!tools.is_empty(), || "no tools".to_owned())?;
            expect(person.visits() == 1, || format!("{} visits of the browser", person.visits()))?;
            Ok(format!("{} tools", tools.len()))
        })
        .await;
    report
        .check("calls with proofs of possession", async { Ok(call(&client, "test_simple_text").await?) })
        .await;
    client.close().await;
    Ok(())
}

//! Flows of rounds over two instances: their tokens are renewed and widened, and they belong to one user.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use roundtrip::client::{ServerRejection, Turn};
use roundtrip::{Client, Error, FormRequest};
use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::json;

use crate::person::{ALICE, Person};
use crate::{call, code, is_called, issuer};

/// Life of the tokens of a flow, in seconds.
const SECONDS: u64 = 2;

/// O34, O35: the principal survives renewal and step-up in the middle of a flow; no question is asked twice.
pub(crate) async fn check(report: &mut Report, url: &str) -> Result<(), Failure> {
    issuer::set_seconds(SECONDS).await?;
    let (person, asked) = (Person::default(), Arc::new(Mutex::new(Vec::new())));
    let questions = Arc::clone(&asked);
    let client =
        Client::http(url)?.oauth(person.at(code::sign_in("dcr")?)).on_form(move |form: FormRequest| {
            questions.lock().unwrap_or_else(PoisonError::into_inner).push(form.message.clone());
            async move {
                // The token that the question came with is over before the answer is sent.
                tokio::time::sleep(Duration::from_secs(SECONDS)).await;
                form.accept(json!({ "ok": true }))
            }
        });
    report
        .check("renewal and step-up in the middle of a flow", async {
            let said = call(&client, "publish").await?;
            expect(said.starts_with("true true by alice, drafted at "), || said.clone())?;
            let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
            expect(asked == ["Begin?", "Publish?"], || format!("asked {asked:?}"))?;
            let renewed = issuer::exchanges("refresh_token").await?;
            expect(renewed > 0, || "nothing was renewed".to_owned())?;
            expect(person.visits() == 2, || format!("{} visits of the browser", person.visits()))?;
            Ok(format!("{said}; {renewed} renewals"))
        })
        .await;
    client.close().await;
    issuer::set_seconds(300).await?;
    report.check("the flow of another user", keeps_others_out(url)).await;
    Ok(())
}

/// O36: a user cannot go on with the flow of another, who can.
async fn keeps_others_out(url: &str) -> Result<String, Failure> {
    let signed_in = |name: &'static str| -> Result<Client, Failure> {
        Ok(Client::http(url)?.oauth(Person::named(name).at(code::sign_in("dcr")?)))
    };
    let (alice, bob) = (signed_in(ALICE)?, signed_in("bob")?);
    let Turn::Asked(pending) = alice.call_tool("publish", json!({})).one_round().await? else {
        return Err("nothing was asked".into());
    };
    let answered = pending.answer("begin", json!({ "ok": true }))?;
    match bob.resume(answered.clone()).await {
        Err(Error::Rejected(ServerRejection::StateRejected(_))) => {}
        other => return Err(format!("bob got {other:?}").into()),
    }
    is_called(&bob, "bob").await?;
    match alice.resume(answered).await? {
        Turn::Asked(_) => Ok("bob is refused, alice goes on".into()),
        other => Err(format!("alice got {other:?}").into()),
    }
}

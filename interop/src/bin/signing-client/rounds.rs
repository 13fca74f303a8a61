//! A flow of rounds over two instances, during which the token is renewed and widened.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use roundtrip::{Client, FormRequest};
use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::json;

use crate::person::Person;
use crate::{call, code, issuer};

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
    Ok(())
}

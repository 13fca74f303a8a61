//! Calls taken by hand, one request at a time, and stored in between.

use std::time::Duration;

use roundtrip::client::{ApiMisuse, Kind};
use roundtrip::wire::{
    ClientCapabilities, GetPrompt, Method, ReadResource, RootsCapability, SamplingCapability,
};
use roundtrip::{Client, Error, Pending, Turn};
use roundtrip_interop::asking::{Asking, TOOLS};
use roundtrip_interop::report::{Failure, Report, Text, expect};
use roundtrip_interop::user::{everything, folders, paris};
use serde_json::json;

/// More requests than any of these calls needs.
const ENOUGH: usize = 10;

pub(crate) async fn check(report: &mut Report, client: &Client, handshake: bool) {
    // Taking questions by hand declares forms and pages; other capabilities are declared here.
    let client = &client.clone().capabilities(ClientCapabilities {
        roots: Some(RootsCapability::default()),
        sampling: Some(SamplingCapability::default()),
        ..ClientCapabilities::default()
    });
    for asking in &TOOLS {
        let name = format!("by hand, {} {}", asking.tool, (asking.arguments)());
        report.check(&name, tool(client, asking)).await;
    }
    report.check("by hand, prompt", prompt(client)).await;
    report.check("by hand, resource template", resource(client)).await;
    report.check("by hand, an answer that does not fit", misfit(client)).await;
    report.check("by hand, a question left open", left_open(client)).await;
    report.check("by hand, decline", decline(client)).await;
    if !handshake {
        report.check("by hand, a pause that grows", pauses(client)).await;
    }
}

async fn tool(client: &Client, asking: &Asking) -> Result<String, Failure> {
    let mut turn = client.call_tool(asking.tool, (asking.arguments)()).one_round().await?;
    for requests in 1..ENOUGH {
        match turn {
            Turn::Asked(pending) => turn = client.resume(answer(stored(&pending)?)?).await?,
            Turn::Done(result) => {
                expect(result.text() == asking.text, || format!("got {result:?}"))?;
                return Ok(format!("{requests} requests"));
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    Err("no end to it".into())
}

async fn prompt(client: &Client) -> Result<String, Failure> {
    let turn = client.get_prompt("topic").argument("kind", "poem").one_round().await?;
    let pending: Pending<GetPrompt> = asked(turn)?;
    match client.resume(answer(stored(&pending)?)?).await? {
        Turn::Done(result) if result.text() == "Write a poem about tides" => Ok(result.text()),
        other => Err(format!("got {other:?}").into()),
    }
}

async fn resource(client: &Client) -> Result<String, Failure> {
    let pending: Pending<ReadResource> = asked(client.read_resource("note://7").one_round().await?)?;
    match client.resume(answer(stored(&pending)?)?).await? {
        Turn::Done(result) if result.text() == "Note 7 about tides" => Ok(result.text()),
        other => Err(format!("got {other:?}").into()),
    }
}

async fn misfit(client: &Client) -> Result<String, Failure> {
    let pending = asked(client.call_tool("survey", json!({})).one_round().await?)?;
    let key = first(&pending)?;
    match pending.answer(&key, json!({ "name": "Ada", "age": 200 })) {
        Err(Error::ApiMisuse(ApiMisuse::UnfitAnswer(why)))
            if why.contains("age") && why.contains("email") =>
        {
            Ok(why)
        }
        other => Err(format!("an age of 200, and no email: {other:?}").into()),
    }
}

async fn left_open(client: &Client) -> Result<String, Failure> {
    let pending = asked(client.call_tool("together", json!({})).one_round().await?)?;
    let form = pending.questions().find(|question| question.kind() == Kind::Form);
    let key = form.ok_or("no form among the questions")?.key().to_owned();
    let pending = pending.answer(&key, everything())?;
    expect(pending.open().count() == 2, || format!("open: {:?}", pending.open().collect::<Vec<_>>()))?;
    match client.resume(pending).await {
        Err(Error::ApiMisuse(why @ ApiMisuse::Unanswered { .. })) => Ok(why.to_string()),
        other => Err(format!("two questions are open: {other:?}").into()),
    }
}

async fn decline(client: &Client) -> Result<String, Failure> {
    let pending = asked(client.call_tool("survey", json!({})).one_round().await?)?;
    let key = first(&pending)?;
    match client.resume(pending.decline(&key)?).await? {
        Turn::Done(result) if result.is_error == Some(true) => Ok(result.text()),
        other => Err(format!("wanted a tool error, got {other:?}").into()),
    }
}

/// Checks that a server that only wants to be called again is not called at once.
async fn pauses(client: &Client) -> Result<String, Failure> {
    let mut pending = asked(client.call_tool("wait", json!({})).one_round().await?)?;
    let mut pauses: Vec<Duration> = Vec::new();
    loop {
        expect(pending.questions().next().is_none(), || format!("asked {pending:?}"))?;
        pauses.push(pending.pause());
        match client.resume(pending).await? {
            Turn::Asked(again) => pending = again,
            Turn::Done(result) => {
                let grows =
                    pauses.len() == 3 && pauses[0] > Duration::ZERO && pauses.is_sorted_by(|a, b| a < b);
                expect(grows, || format!("pauses of {pauses:?}"))?;
                return Ok(format!("{} after {pauses:?}", result.text()));
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
}

/// Returns the key of the one question: servers of the handshake eras give none.
fn first(pending: &Pending) -> Result<String, Failure> {
    Ok(pending.questions().next().ok_or("no question")?.key().to_owned())
}

fn asked<M: Method>(turn: Turn<M>) -> Result<Pending<M>, Failure> {
    match turn {
        Turn::Asked(pending) => Ok(pending),
        _ => Err("nothing was asked".into()),
    }
}

/// Stores a pending flow and loads it, as another process would.
fn stored<M: Method>(pending: &Pending<M>) -> Result<Pending<M>, Failure> {
    Ok(serde_json::from_str(&serde_json::to_string(pending)?)?)
}

/// Answers every question of a round by its kind.
fn answer<M: Method>(mut pending: Pending<M>) -> Result<Pending<M>, Failure> {
    let open: Vec<(String, Kind)> =
        pending.open().map(|question| (question.key().to_owned(), question.kind())).collect();
    for (key, kind) in open {
        pending = match kind {
            Kind::Form => pending.answer(&key, everything())?,
            Kind::Url => pending.consent(&key)?,
            Kind::Sampling => pending.answer(&key, paris())?,
            Kind::Roots => pending.answer(&key, json!({ "roots": folders() }))?,
            other => return Err(format!("{key} is {other:?}").into()),
        };
    }
    Ok(pending)
}

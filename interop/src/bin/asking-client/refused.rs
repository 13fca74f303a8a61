//! Calls that end without an answer: the user refuses, the client cannot be asked, or the questions never end.

use roundtrip::client::{GaveUp, PeerMisbehaved};
use roundtrip::wire::MISSING_REQUIRED_CLIENT_CAPABILITY;
use roundtrip::{Client, Error, FormAnswer, FormRequest};
use roundtrip_interop::report::{Failure, Report, Text, expect};
use roundtrip_interop::user::{Act, User};
use serde_json::json;

pub(crate) async fn check(report: &mut Report, client: &Client, handshake: bool) {
    for act in [Act::Decline, Act::Cancel] {
        for tool in ["greet", "together", "rounds", "survey", "no_state", "visit", "wait_and_ask"] {
            report.check(&format!("{tool}, {}", act.word()), tool_error(client, tool, [act])).await;
        }
        let second = tool_error(client, "rounds", [Act::Accept, act]);
        report.check(&format!("rounds, {} in the second round", act.word()), second).await;
        report.check(&format!("prompt, {}", act.word()), prompt(client, act)).await;
        report.check(&format!("resource template, {}", act.word()), resource(client, act)).await;
    }
    for tool in ["greet", "sample", "roots", "together", "survey", "visit"] {
        report.check(&format!("{tool}, nobody to ask"), nobody(client, tool, handshake)).await;
    }
    let forms = client.clone().on_form(async |form: FormRequest| form.decline());
    report.check("visit, only forms can be asked", nobody(&forms, "visit", handshake)).await;
    report.check("a handler that fails", handler_fails(client)).await;
    report.check("endless", endless(client)).await;
    report.check("a round that is refused", refused_round(client)).await;
}

/// Checks that a refusal reaches the tool, which answers with a tool error.
async fn tool_error(
    client: &Client,
    tool: &str,
    acts: impl IntoIterator<Item = Act>,
) -> Result<String, Failure> {
    let acts: Vec<Act> = acts.into_iter().collect();
    let user = User::who(acts.clone());
    let result = user.at(client).call_tool(tool, json!({})).await?;
    let word = acts.last().map_or("", |act| act.word());
    let right = result.is_error == Some(true) && result.text().contains(word);
    expect(right, || format!("wanted a tool error with `{word}` in it, got {result:?}"))?;
    Ok(result.text())
}

async fn prompt(client: &Client, act: Act) -> Result<String, Failure> {
    let user = User::who([act]);
    rejected(user.at(client).get_prompt("topic").argument("kind", "poem").await, act)
}

async fn resource(client: &Client, act: Act) -> Result<String, Failure> {
    let user = User::who([act]);
    rejected(user.at(client).read_resource("note://7").await, act)
}

/// Checks the error of a prompt or a resource, which have no tool errors.
fn rejected<T: Text>(result: Result<T, Error>, act: Act) -> Result<String, Failure> {
    let wanted = format!("topic: {}", act.word());
    match result {
        Err(Error::Rejected(rejection)) if rejection.error().message == wanted => {
            Ok(format!("{}: {wanted}", rejection.error().code))
        }
        Err(other) => Err(format!("wanted `{wanted}`, got: {other}").into()),
        Ok(answer) => Err(format!("wanted `{wanted}`, got the answer `{}`", answer.text()).into()),
    }
}

/// Checks that a server does not ask what the client did not declare. The Python SDK still asks if the round was
/// built by hand; then the client refuses, and says what was asked.
async fn nobody(client: &Client, tool: &str, handshake: bool) -> Result<String, Failure> {
    match client.call_tool(tool, json!({})).await {
        Err(Error::Rejected(rejection)) if rejection.error().code == MISSING_REQUIRED_CLIENT_CAPABILITY => {
            Ok(format!("the server: {}", rejection.error().message))
        }
        Err(Error::PeerMisbehaved(PeerMisbehaved::NotOffered(why))) => Ok(format!("the client: {why}")),
        // Where servers ask in the midst of a call, the tool gets an error that it cannot ask.
        Ok(result) if handshake && result.is_error == Some(true) => {
            Ok(format!("the tool: {}", result.text()))
        }
        other => Err(format!("wanted a refusal, got {other:?}").into()),
    }
}

async fn handler_fails(client: &Client) -> Result<String, Failure> {
    let fails = async |_: FormRequest| Err::<FormAnswer, _>("the terminal is gone");
    let client = client.clone().on_form(fails);
    match client.call_tool("greet", json!({})).await {
        Err(Error::Handler(why)) if why.to_string() == "the terminal is gone" => Ok(why.to_string()),
        other => Err(format!("wanted what the handler said, got {other:?}").into()),
    }
}

/// Checks that the bound on rounds comes before the question: no user answers in vain.
async fn endless(client: &Client) -> Result<String, Failure> {
    let user = User::default();
    match user.at(client).call_tool("endless", json!({})).max_rounds(3).await {
        Err(Error::GaveUp(why @ GaveUp::TooManyRounds { .. })) => {
            let asked = user.asked();
            expect(asked == ["1 Question 1", "2 Question 2", "3 Question 3"], || format!("asked {asked:?}"))?;
            Ok(why.to_string())
        }
        other => Err(format!("wanted an end, got {other:?}").into()),
    }
}

async fn refused_round(client: &Client) -> Result<String, Failure> {
    let user = User::default();
    let call = user.at(client).call_tool("rounds", json!({}));
    let result = call.on_round(|round| if round.round() < 2 { Ok(()) } else { Err("once is enough") }).await;
    match result {
        Err(Error::Handler(why)) if why.to_string() == "once is enough" => {
            expect(user.asked().len() == 1, || format!("asked {:?}", user.asked()))?;
            Ok(why.to_string())
        }
        other => Err(format!("wanted what the hook said, got {other:?}").into()),
    }
}

//! Calls that begin anew, and progress over all rounds of a call.

use std::sync::{Arc, Mutex};

use roundtrip::client::ServerRejection;
use roundtrip::{Ask, Client, Error, Form, FormRequest, Keyring, Progress, Server, Tool, ToolError};
use serde_json::{Value, json};

use super::script::{Answer, Log, asks, done, party, scripted};

/// A server that refuses the first `refused` states that it is handed back.
fn forgetful(refused: usize) -> (Client, Arc<Log>) {
    let states = Mutex::new(0);
    let (client, log) = scripted(move |_, request| {
        if request["params"].get("requestState").is_none() {
            return Answer::Result(asks([("party", party())], Some("s")));
        }
        let mut states = states.lock().expect("states");
        *states += 1;
        if *states > refused {
            return Answer::Result(done());
        }
        let data = json!({ "reason": "invalid_request_state" });
        Answer::LateError(std::time::Duration::ZERO, json!({ "code": -32602, "message": "no", "data": data }))
    });
    (client.on_form(async |form: FormRequest| form.accept(json!({ "people": 2 }))), log)
}

fn is_refused(result: &Result<roundtrip::wire::CallToolResult, Error>) -> bool {
    matches!(result, Err(Error::Rejected(ServerRejection::StateRejected(_))))
}

/// A call whose state is refused begins anew where the caller wants that, once, and under keys of its own.
#[tokio::test]
async fn a_call_begins_anew_once_when_its_state_is_refused() {
    let (client, log) = forgetful(1);
    assert!(is_refused(&client.call_tool("book", ()).await), "nobody asked for it");
    assert_eq!(log.len(), 2);

    let (client, log) = forgetful(1);
    let call = client.call_tool("book", json!({ "at": "Nopa" })).restart_when_refused().idempotency_key("k");
    call.await.expect("a result");
    let params = |number: usize| log.params(number);
    assert_eq!(params(0), params(2), "from the first request");
    assert!(params(2).get("inputResponses").is_none());
    let keys: Vec<Value> = log
        .requests()
        .iter()
        .map(|request| request["params"]["_meta"]["dev.roundtrip/idempotencyKey"].clone())
        .collect();
    assert_eq!(keys, ["k.1", "k.2", "k.3", "k.4"]);

    let (client, log) = forgetful(2);
    assert!(is_refused(&client.call_tool("book", ()).restart_when_refused().await), "once");
    assert_eq!(log.len(), 4);
}

/// C6: the bound on rounds holds for those before the restart too.
#[tokio::test]
async fn a_restart_does_not_get_around_the_bound_on_rounds() {
    let (client, log) = forgetful(1);
    let error =
        client.call_tool("book", ()).restart_when_refused().max_rounds(1).await.expect_err("asked twice");
    assert!(matches!(error, Error::GaveUp(_)), "{error:?}");
    assert_eq!(log.len(), 3);
}

#[derive(Form)]
struct Party {
    people: u8,
}

/// N2: progress never runs backwards in a call, though the handler runs again and a foreign server reports it again.
#[tokio::test]
async fn progress_never_runs_backwards_over_the_rounds_of_a_call() {
    async fn book(ask: Ask, progress: Progress) -> Result<String, ToolError> {
        progress.report((1, 4));
        let first: Party = ask.form("first", "How many?").await?;
        progress.report((2, 4));
        let second: Party = ask.form("second", "How many more?").await?;
        progress.report((4, 4));
        Ok(format!("{}", first.people + second.people))
    }
    let server =
        Server::new("bookings", "1").tool(Tool::new("book", book)).seal(Keyring::random().expect("a key"));
    let client = Client::in_process(server).expect("a sound server");
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "people": 2 })));
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let call =
        client.call_tool("book", ()).on_progress(move |step| seen.lock().expect("steps").push(step.progress));
    assert_eq!(call.await.expect("a result").text(), "4");
    assert_eq!(*steps.lock().expect("steps"), [1.0, 2.0, 4.0]);
}

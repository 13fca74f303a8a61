//! Progress and logs over the rounds of a flow: nothing is told twice, and progress never runs backwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use roundtrip::seal::Sealer;
use roundtrip::server::Peer;
use roundtrip::{Ask, Log, Progress, Server, State, Tool, ToolError};
use serde_json::{Value, json};

use crate::asking::yes;
use crate::fleet::Slow;
use crate::peers::Pipe;
use crate::support::{Call, Running, Turn, headers, messages_of};

/// Says how far it is before each of its questions.
async fn steady(ask: Ask, progress: Progress, log: Log) -> Result<&'static str, ToolError> {
    progress.report((1, 4));
    log.info("begun");
    ask.confirm("a", "A?").await?;
    progress.report((2, 4));
    log.info("half");
    ask.confirm("b", "B?").await?;
    progress.report((4, 4));
    log.info("ended");
    Ok("done")
}

fn server() -> Server {
    Server::new("s", "1").tool(Tool::new("steady", steady))
}

/// The request of a round whose client wants to be told, each time with another progress token.
fn listening(call: &Call, last: Option<&Turn>, answers: Option<Value>) -> Value {
    let mut request = call.request(last.and_then(Turn::state), answers);
    request["params"]["_meta"]["progressToken"] = json!(last.map_or("first", |_| "later"));
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    request
}

/// The progress and the log messages among a round's messages, in order.
fn told(messages: &[Value]) -> Vec<String> {
    let told = messages.iter().filter_map(|message| match message["method"].as_str()? {
        "notifications/progress" => message["params"]["progress"].as_f64().map(|step| step.to_string()),
        _ => message["params"]["data"].as_str().map(str::to_owned),
    });
    told.collect()
}

/// Plays a flow whose questions are `a` and `b`, and returns what each round was told.
async fn flow(name: &str, mut send: impl AsyncFnMut(Value) -> Vec<Value>) -> Vec<Vec<String>> {
    let call = Call::tool(name);
    let (mut rounds, mut request) = (Vec::new(), listening(&call, None, None));
    for key in ["a", "b", ""] {
        let messages = send(request).await;
        rounds.push(told(&messages));
        let turn = Turn(messages.last().expect("a response").clone());
        if key.is_empty() {
            assert_eq!(turn.text(), "done");
            break;
        }
        request = listening(&call, Some(&turn), Some(yes(key)));
    }
    rounds
}

/// N2: over HTTP, on a pipe, behind a hook and with a codec that has to be waited for, each round tells what is new.
#[tokio::test]
async fn a_round_tells_what_is_new() {
    let expected = [["1", "begun"], ["2", "half"], ["4", "ended"]];
    let running = Running::start(server()).await;
    let rounds = flow("steady", async |request: Value| {
        let mut connection = running.connect().await;
        connection.post(&headers(&request), request.to_string().as_bytes()).await.events()
    });
    assert_eq!(rounds.await, expected, "over HTTP");

    let mut pipe = Pipe::open(server());
    let rounds = flow("steady", async |request: Value| {
        pipe.send(&request).await;
        let mut messages = vec![pipe.receive().await];
        while messages.last().is_some_and(|last| last.get("method").is_some()) {
            messages.push(pipe.receive().await);
        }
        messages
    });
    assert_eq!(rounds.await, expected, "on a pipe");

    let slow = server().seal(Sealer::with_codec(Slow(Arc::default()))).around(|_, next| next.run());
    let slow = slow.build().expect("a server");
    let rounds = flow("steady", async |request: Value| messages_of(&slow, &Peer::default(), &request).await);
    assert_eq!(rounds.await, expected, "behind a hook");
}

/// N2: a client that listens from a later round on is told everything then.
#[tokio::test]
async fn what_was_not_sent_is_not_left_out() {
    let endpoint = server().build().expect("a server");
    let call = Call::tool("steady");
    let silent = call.begin(&endpoint).await;
    let request = listening(&call, Some(&silent), Some(yes("a")));
    let messages = messages_of(&endpoint, &Peer::default(), &request).await;
    assert_eq!(told(&messages), ["1", "begun", "2", "half"]);
}

/// N2: from the first log message that differs all are sent; progress does not run backwards, whatever the handler reports.
#[tokio::test]
async fn what_differs_is_sent() {
    async fn moody(
        State(runs): State<Arc<AtomicU32>>,
        ask: Ask,
        progress: Progress,
        log: Log,
    ) -> Result<&'static str, ToolError> {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        log.info("same");
        log.info(format!("run {run}"));
        log.info("after");
        progress.report(9 - run);
        ask.confirm("a", "A?").await?;
        progress.report(10);
        ask.confirm("b", "B?").await?;
        Ok("done")
    }
    let server = Server::new("s", "1").state(Arc::new(AtomicU32::new(0))).tool(Tool::new("moody", moody));
    let endpoint = server.build().expect("a server");
    let rounds =
        flow("moody", async |request: Value| messages_of(&endpoint, &Peer::default(), &request).await);
    let expected: [&[&str]; 3] =
        [&["same", "run 0", "after", "9"], &["run 1", "after", "10"], &["run 2", "after"]];
    assert_eq!(rounds.await, expected);
}

/// Many log messages, one of which may change from run to run.
async fn many(State(changes): State<Arc<AtomicU32>>, ask: Ask, log: Log) -> Result<&'static str, ToolError> {
    let change = changes.load(Ordering::SeqCst);
    for line in 0..40 {
        log.info(if line == 30 { format!("change {change}") } else { format!("line {line}") });
    }
    ask.confirm("a", "A?").await?;
    ask.confirm("b", "B?").await?;
    Ok("done")
}

/// N2: of more messages than are told apart one by one, all are left out or those behind the first sixteen are sent.
#[tokio::test]
async fn many_messages_are_compared_as_a_whole() {
    let changes = Arc::new(AtomicU32::new(0));
    let server = Server::new("s", "1").state(Arc::clone(&changes)).tool(Tool::new("many", many));
    let endpoint = server.build().expect("a server");
    let mut round = 0;
    let rounds = flow("many", async |request: Value| {
        round += 1;
        changes.store(round / 3, Ordering::SeqCst);
        messages_of(&endpoint, &Peer::default(), &request).await
    });
    let [first, second, third] = <[_; 3]>::try_from(rounds.await).expect("three rounds");
    assert_eq!((first.len(), second.len(), third.len()), (40, 0, 24));
    assert_eq!(
        (third[0].as_str(), third[14].as_str(), third[23].as_str()),
        ("line 16", "change 1", "line 39")
    );
}

/// S8, A13: what was sent adds a few bytes to the state, the same for any number of messages, and nothing where there is none.
#[tokio::test]
async fn what_was_sent_weighs_little() {
    async fn silent(ask: Ask) -> Result<String, ToolError> {
        Ok(ask.confirm("a", "A?").await?.to_string())
    }
    async fn size(tool: Tool) -> usize {
        let endpoint = Server::new("s", "1").tool(tool).build().expect("a server");
        let request = listening(&Call::tool("t"), None, None);
        let messages = messages_of(&endpoint, &Peer::default(), &request).await;
        Turn(messages.last().expect("a response").clone()).state().expect("state").len()
    }
    let telling = |steps: u32, lines: u32| {
        Tool::new("t", move |ask: Ask, progress: Progress, log: Log| async move {
            (1..=steps).for_each(|step| progress.report(step));
            (0..lines).for_each(|line| log.info(line));
            Ok::<_, ToolError>(ask.confirm("a", "A?").await?.to_string())
        })
    };
    let silent = size(Tool::new("t", silent)).await;
    assert_eq!(size(telling(0, 0)).await, silent);
    let step = size(telling(1, 0)).await;
    assert!(step - silent <= 18, "{}", step - silent);
    assert_eq!(size(telling(100, 0)).await, step);
    let lines = size(telling(100, 16)).await;
    assert!(lines - silent <= 82, "{}", lines - silent);
    assert_eq!(size(telling(100, 200)).await, lines);
}

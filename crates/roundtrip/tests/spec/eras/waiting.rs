//! Rounds without a question in the handshake eras: nothing waits that has no reason to.

use std::time::Duration;

use roundtrip::server::Limits;
use roundtrip::{Ask, AskError, Handshake, Log, Progress, Reply, Round, Server, State, Tool, ToolError};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::tools::Diary;
use crate::peers::{Pipe, V2025_11_25, Web, everything, request, text, tool};

/// Milliseconds of a call that never waits.
const AT_ONCE: u128 = 0;

/// Comes by nine places where it could move to another instance.
async fn moving(State(diary): State<Diary>, ask: Ask) -> Result<&'static str, AskError> {
    diary.note("run");
    for place in 0..9 {
        ask.checkpoint(format!("place-{place}")).await?;
    }
    Ok("arrived")
}

/// Twelve steps by hand, each of them a round.
async fn steps(State(diary): State<Diary>, round: Round) -> Result<Reply, ToolError> {
    let done = round.state::<u32>()?.unwrap_or(0);
    diary.note("run");
    Ok(if done < 12 { round.hand_off(&(done + 1)) } else { Reply::text("twelve steps") })
}

/// Looks three times for something outside, with nothing new to remember.
async fn polling(State(diary): State<Diary>, round: Round) -> Result<Reply, ToolError> {
    diary.note("run");
    Ok(if diary.read().len() < 4 { round.hand_off(&"waiting") } else { Reply::text("found") })
}

/// Says how far it is, and waits in between.
async fn telling(
    State(diary): State<Diary>,
    ask: Ask,
    progress: Progress,
    log: Log,
) -> Result<String, ToolError> {
    progress.report((1, 2));
    log.info("begun");
    let look = async || {
        diary.note("look");
        Ok::<_, ToolError>((diary.read().len() == 3).then_some(7_u32))
    };
    let found = ask.until("found", look).await?;
    progress.report((2, 2));
    log.info("found");
    Ok(found.to_string())
}

async fn hasty(ask: Ask) -> Result<String, ToolError> {
    Ok(ask.confirm("sure", "Sure?").valid_for(Duration::from_secs(5)).await?.to_string())
}

/// A server that wants its flows to move on.
fn server(diary: &Diary) -> Server {
    let mut limits = Limits::default();
    limits.shed_above = 0;
    Server::new("eras", "1")
        .limits(limits)
        .state(diary.clone())
        .tool(Tool::new("moving", moving))
        .tool(Tool::new("steps", steps))
        .tool(Tool::new("polling", polling))
        .tool(Tool::new("telling", telling))
        .tool(Tool::new("hasty", hasty))
}

/// Calls a tool in every way in which the handshake eras call, and returns the answers, the milliseconds each took, and the
/// number of times that the tool wrote into its diary.
async fn in_every_way(name: &str) -> Vec<(String, u128, usize)> {
    let mut ways = Vec::new();
    let diary = Diary::default();
    let mut pipe = Pipe::agreed(server(&diary), V2025_11_25, &everything()).await;
    let begun = Instant::now();
    let answer = pipe.call(&tool(1, name)).await;
    ways.push((text(&answer).to_owned(), begun.elapsed().as_millis(), diary.read().len()));

    let diary = Diary::default();
    let session = Web::new(server(&diary)).session(V2025_11_25, &everything()).await;
    let begun = Instant::now();
    let answer = session.with("accept", "application/json").post(&tool(1, name)).await.json().await;
    ways.push((text(&answer).to_owned(), begun.elapsed().as_millis(), diary.read().len()));

    let diary = Diary::default();
    let web = Web::new(server(&diary).handshake(Handshake::stateless()));
    let client = web.with("mcp-protocol-version", V2025_11_25);
    let begun = Instant::now();
    let answer = client.post(&tool(1, name)).await.json().await;
    ways.push((text(&answer).to_owned(), begun.elapsed().as_millis(), diary.read().len()));
    ways
}

/// L2, L4: a checkpoint is passed by where no client retries: in a session, without its stream, and without a session.
#[tokio::test(start_paused = true)]
async fn checkpoints_are_passed_by() {
    for way in in_every_way("moving").await {
        assert_eq!(way, ("arrived".to_owned(), AT_ONCE, 1));
    }
}

/// L3: a hand-off whose state changed goes on at once.
#[tokio::test(start_paused = true)]
async fn a_hand_off_that_is_progress_goes_on_at_once() {
    for way in in_every_way("steps").await {
        assert_eq!(way, ("twelve steps".to_owned(), AT_ONCE, 13));
    }
}

/// L3: a hand-off whose state did not change waits for something outside: it goes on after a pause, and the next is longer.
#[tokio::test(start_paused = true)]
async fn a_hand_off_that_is_no_progress_goes_on_after_a_pause() {
    for way in in_every_way("polling").await {
        assert_eq!(way, ("found".to_owned(), 100 + 200, 4));
    }
}

/// L2: `.valid_for(..)` counts in a session too, in place of the time that answers usually have.
#[tokio::test(start_paused = true)]
async fn a_question_says_how_long_its_answer_may_take() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    let begun = Instant::now();
    assert_eq!(pipe.call(&tool(1, "hasty")).await["method"], "elicitation/create");
    assert_eq!(pipe.receive().await["method"], "notifications/cancelled");
    assert!(text(&pipe.receive().await).contains("did not answer within 5s"));
    assert_eq!(begun.elapsed().as_secs(), 5);
}

/// L2, N2: a handler that is entered again after a pause does not repeat its progress or its logs.
#[tokio::test(start_paused = true)]
async fn a_handler_that_is_entered_again_does_not_repeat_itself() {
    let told = |message: &Value| match message["method"].as_str() {
        Some("notifications/progress") => {
            message["params"]["progress"].as_f64().expect("a number").to_string()
        }
        Some(_) => message["params"]["data"].to_string(),
        None => text(message).to_owned(),
    };
    let call = json!({ "name": "telling", "arguments": {}, "_meta": { "progressToken": 5 } });
    let call = request(1, "tools/call", call);
    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    pipe.send(&call).await;
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "7") {
        heard.push(told(&pipe.receive().await));
    }
    assert_eq!(heard, ["1", "\"begun\"", "2", "\"found\"", "7"]);

    let session = Web::new(server(&Diary::default())).session(V2025_11_25, &everything()).await;
    let (mut answered, mut heard) = (session.post(&call).await, Vec::new());
    while let Some(message) = answered.message().await {
        heard.push(told(&message));
    }
    assert_eq!(heard, ["1", "\"begun\"", "2", "\"found\"", "7"]);
}

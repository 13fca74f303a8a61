//! Tasks that wait for something outside.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use roundtrip::{Ask, Reply, Round, State, Tool, ToolError, When};
use serde_json::json;

use super::{TaskClient, server, text};

/// Times at which a handler was entered.
type Entries = Arc<Mutex<Vec<Instant>>>;

fn enter(entries: &Entries) -> usize {
    let mut entries = entries.lock().expect("no panic");
    entries.push(Instant::now());
    entries.len()
}

/// Asserts that the pauses between entries were as long as these, in milliseconds. Clocks may differ by some.
#[track_caller]
fn assert_pauses(entries: &Entries, pauses: &[u64]) {
    let entries = entries.lock().expect("no panic");
    assert_eq!(entries.len(), pauses.len() + 1);
    for (entered, pause) in entries.windows(2).zip(pauses) {
        let paused = entered[1] - entered[0];
        assert!(paused + Duration::from_millis(10) >= Duration::from_millis(*pause), "{paused:?} {pause}");
    }
}

/// T4: a round by hand with state alone is a wait, whether or not the state has changed: each is longer than the one before.
#[tokio::test]
async fn a_round_with_state_alone_is_a_wait() {
    async fn counts(round: Round, State(entries): State<Entries>) -> Result<Reply, ToolError> {
        let n = round.state::<u32>()?.unwrap_or(0);
        enter(&entries);
        Ok(if n < 4 { round.hand_off(&(n + 1)) } else { Reply::text("four") })
    }
    async fn looks(round: Round, State(entries): State<Entries>) -> Result<Reply, ToolError> {
        Ok(if enter(&entries) < 5 { round.hand_off(&"waiting") } else { Reply::text("four") })
    }
    for tool in [Tool::new("waits", counts), Tool::new("waits", looks)] {
        let entries = Entries::default();
        let client = TaskClient::of(server([tool.task(When::Required)]).state(Arc::clone(&entries)));
        let id = client.start("waits", json!({})).await;
        assert_eq!(text(&client.ended(&id).await), "four");
        assert_pauses(&entries, &[100, 200, 400, 800]);
    }
}

/// T4: `until` waits, also behind a step that fails again in each round.
#[tokio::test]
async fn a_step_that_fails_does_not_end_the_wait() {
    async fn waits(ask: Ask, State(entries): State<Entries>) -> Result<String, ToolError> {
        let n = enter(&entries);
        let fails = async |_| if n > 2 { Err(ToolError::new("not yet")) } else { Ok(()) };
        let _ = if n > 2 { ask.once("fails", fails).await } else { Ok(()) };
        ask.until("found", async || Ok::<_, ToolError>((n > 3).then(|| n.to_string()))).await
    }
    let entries = Entries::default();
    let tool = Tool::new("waits", waits).task(When::Required);
    let client = TaskClient::of(server([tool]).state(Arc::clone(&entries)));
    let id = client.start("waits", json!({})).await;
    assert_eq!(text(&client.ended(&id).await), "4");
    assert_pauses(&entries, &[100, 200, 100]);
}

/// T4: a handler that asked is run again when it is answered, and what it waits for then begins with a pause, too.
#[tokio::test]
async fn a_wait_begins_anew_behind_a_question() {
    async fn waits(round: Round, State(entries): State<Entries>) -> Result<Reply, ToolError> {
        let n = round.state::<u32>()?.unwrap_or(0);
        enter(&entries);
        Ok(match n {
            0..=1 => round.hand_off(&(n + 1)),
            2 if round.confirmed("sure")?.is_none() => {
                round.ask([roundtrip::Question::confirm("sure", "Sure?")])
            }
            2 => round.hand_off(&3),
            _ => Reply::text("sure"),
        })
    }
    let entries = Entries::default();
    let tool = Tool::new("waits", waits).task(When::Required);
    let client = TaskClient::of(server([tool]).state(Arc::clone(&entries)));
    let id = client.start("waits", json!({})).await;
    client.asks(&id).await;
    client.update(&id, json!({ "sure": { "action": "accept", "content": { "confirm": true } } })).await;
    assert_eq!(text(&client.ended(&id).await), "sure");
    assert_pauses(&entries, &[100, 200, 0, 100]);
}

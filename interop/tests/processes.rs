//! Instances as processes of their own: what they share is a key ring, or is not.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use roundtrip::client::{ServerRejection, Turn};
use roundtrip::wire::CallTool;
use roundtrip::{Client, Error, Pending};
use serde_json::json;

const OLD: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222222222222222222222222222";

/// A server in a process of its own; it ends with the test.
struct Instance {
    process: Child,
    client: Client,
}

impl Instance {
    fn start(keys: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_conformance-server"))
            .env("PORT", "0")
            .env("ROUNDTRIP_KEYS", keys)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("an address");
        Self { client: Client::http(url).expect("a URL"), process }
    }

    /// The first round of a flow that asks twice.
    async fn ask(&self) -> Pending<CallTool> {
        let call = self.client.call_tool("test_input_required_result_multi_round", json!({}));
        match call.one_round().await.expect("a first round") {
            Turn::Asked(pending) => pending.answer("step1", json!({ "name": "Ada" })).expect("an answer"),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn coloured(turn: Turn) -> Pending<CallTool> {
    match turn {
        Turn::Asked(pending) => pending.answer("step2", json!({ "color": "green" })).expect("an answer"),
        other => panic!("{other:?}"),
    }
}

fn text(turn: &Turn) -> &str {
    match turn {
        Turn::Done(result) => result.content[0].as_text().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

/// S12: two processes with one key ring finish each other's flows, round by round; with two rings they refuse.
#[tokio::test]
async fn processes_finish_each_others_flows() {
    let (one, two, stranger) = (Instance::start(OLD), Instance::start(OLD), Instance::start(NEW));
    let second = two.client.resume(one.ask().await).await.expect("a second round");
    let done = one.client.resume(coloured(second)).await.expect("a result");
    assert_eq!(text(&done), "Ada likes green");

    match stranger.client.resume(one.ask().await).await {
        Err(Error::Rejected(ServerRejection::StateRejected(error))) => {
            assert_eq!((error.code, &*error.message), (-32602, "Invalid or expired requestState"));
        }
        other => panic!("a stranger must refuse: {other:?}"),
    }
}

/// S2: a rotation in three phases, with every process replaced while flows are under way, loses none of them.
#[tokio::test]
async fn a_rotation_loses_no_flow() {
    let phases = [OLD.to_owned(), format!("{OLD},{NEW}"), format!("{NEW},{OLD}"), NEW.to_owned()];
    let mut under_way: Vec<Pending<CallTool>> = Vec::new();
    let mut finished = 0;
    for keys in &phases {
        let (one, two) = (Instance::start(keys), Instance::start(keys));
        for (number, pending) in std::mem::take(&mut under_way).into_iter().enumerate() {
            let (first, then) = if number % 2 == 0 { (&one, &two) } else { (&two, &one) };
            let second = first.client.resume(pending).await.expect("a second round");
            let done = then.client.resume(coloured(second)).await.expect("a result");
            assert_eq!(text(&done), "Ada likes green");
            finished += 1;
        }
        for _ in 0..20 {
            under_way.push(one.ask().await);
        }
    }
    assert_eq!(finished, 60);
}

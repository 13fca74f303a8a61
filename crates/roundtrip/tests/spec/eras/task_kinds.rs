//! Tasks of 2025-11-25 that ask for everything.

use roundtrip::server::Peer;
use roundtrip::{MemoryTasks, Tasks};
use serde_json::{Value, json};

use crate::peers::{Pipe, V2025_11_25, answer, everything, initialize, initialized, request, text};
use crate::tasks::kinds::{self, TOLD, styles};

/// T27, A1, A12: a task of 2025-11-25 asks for forms, web pages, the model and the roots, in every style of handler, by requests that name
/// it.
#[tokio::test]
async fn a_task_asks_for_every_kind_in_a_session() {
    let (server, styles) = styles(Tasks::new(MemoryTasks::new()));
    let mut pipe = Pipe::open_for(server, Peer { is_only: true, ..Peer::default() });
    pipe.call(&initialize(V2025_11_25, &everything())).await;
    pipe.send(&initialized()).await;
    for (tool, _) in styles {
        pipe.send(&request(1, "tools/call", json!({ "name": tool, "task": {} }))).await;
        let mut created = pipe.receive().await;
        while created.get("result").is_none() {
            created = pipe.receive().await;
        }
        let id = created["result"]["task"]["taskId"].clone();
        pipe.send(&request(2, "tasks/result", json!({ "taskId": id }))).await;
        let (mut asked, result) = answered(&mut pipe, &id).await;
        asked.sort_unstable();
        let all = ["elicitation/create"; 3].into_iter().chain(["roots/list", "sampling/createMessage"]);
        assert_eq!(asked, all.collect::<Vec<_>>(), "{tool}");
        assert_eq!(text(&result), TOLD, "{tool}");
    }
}

/// Answers what a task asks until its result comes. Returns the methods of its questions, and the result.
async fn answered(pipe: &mut Pipe, id: &Value) -> (Vec<String>, Value) {
    let mut asked = Vec::new();
    loop {
        let message = pipe.receive().await;
        match message["method"].as_str() {
            None => return (asked, message),
            Some(method) if message.get("id").is_some() => {
                let named = &message["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
                assert_eq!(named, id, "{message}");
                asked.push(method.to_owned());
                pipe.send(&answer(&message, kinds::answer(&message))).await;
            }
            Some(_) => {}
        }
    }
}

//! Structured results of tasks.

use roundtrip::Error;
use roundtrip::client::PeerMisbehaved;
use serde_json::{Value, json};

use super::{created, task};
use crate::rounds::script::{Answer, scripted};

/// N4: the result of a task is checked against the tool's output schema.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_is_checked() {
    let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = json!({ "name": "book", "inputSchema": { "type": "object" }, "outputSchema": output });
    let result =
        |n: Value| json!({ "resultType": "complete", "content": [], "structuredContent": { "n": n } });
    for (n, fits) in [(json!(1), true), (json!("one"), false)] {
        let (tool, result) = (tool.clone(), result(n));
        let (client, _log) = scripted(move |_, request| {
            Answer::Result(match request["method"].as_str() {
                Some("tools/list") => json!({ "resultType": "complete", "tools": [tool] }),
                Some("tasks/get") => task("completed", json!({ "result": result })),
                _ => created(),
            })
        });
        client.list_tools().await.expect("tools");
        let ended = client.call_tool("book", ()).await;
        assert_eq!(ended.is_ok(), fits, "{ended:?}");
        if let Err(error) = ended {
            assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::UnfitOutput(_))), "{error:?}");
        }
    }
}

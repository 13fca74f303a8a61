//! A task that outlives the client that started it: its handle is stored in the middle of a question, and another client answers.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::client::TaskDialect;
use roundtrip::wire::TaskStatus;
use roundtrip::{
    Ask, Client, FormRequest, MemoryTasks, Server, Started, Status, Task, Tasks, Tool, ToolError, When,
};
use serde_json::json;

async fn archive(ask: Ask, status: Status) -> Result<String, ToolError> {
    status.set("counting");
    let rows = ask.remember("rows", async || 42).await?;
    let sure = ask.confirm("sure", format!("Archive {rows} rows?")).await?;
    Ok(if sure { format!("{rows} rows archived") } else { "nothing archived".to_owned() })
}

fn server() -> Server {
    Server::new("archive", "1.0.0")
        .tool(Tool::new("archive", archive).task(When::Required))
        .tasks(Tasks::new(MemoryTasks::new()).sep_2322())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A task asks only what the client that started it can answer.
    let client = Client::in_process(server())?.on_form(async |form: FormRequest| form.decline());
    for dialect in [TaskDialect::Sep2322, TaskDialect::Extension] {
        let first = client.clone().tasks(dialect);
        let Started::Task(task) = first.call_tool("archive", json!({})).into_task().await? else {
            return Err("it should be a task".into());
        };
        let stored = serde_json::to_string(&task)?;
        drop((first, task));

        // What was stored says all there is to say, the dialect included.
        let task: Task = serde_json::from_str(&stored)?;
        let mut task = client.task(task);
        while task.status().await?.status == TaskStatus::Working {
            tokio::task::yield_now().await;
        }
        task.answer("sure", json!({ "confirm": true })).await?;
        println!("{}", task.wait().await?.text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("archive", "1.0.0").tool(Tool::new("archive", archive));
        let call = roundtrip::testing::replay(server).tool("archive", json!({}));
        let result = call.accept("sure", json!({ "confirm": false })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "nothing archived");
    }
}

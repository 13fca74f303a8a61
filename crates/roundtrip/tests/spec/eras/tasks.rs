//! The experimental tasks of 2025-11-25.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::server::Peer;
use roundtrip::server::ledger::IDEMPOTENCY_KEY;
use roundtrip::wire::ErrorObject;
use roundtrip::{
    Ask, Form, MemoryLedger, MemoryTasks, Principal, Progress, Server, Tasks, Tool, ToolError, When,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::peers::{Pipe, V2025_11_25, Web, accept, everything, initialize, initialized, request, text};

#[derive(Form)]
struct Name {
    #[form(min_length = 2)]
    name: String,
}

async fn hello(ask: Ask) -> Result<String, ToolError> {
    let Name { name } = ask.form("name", "Who are you?").await?;
    Ok(format!("Hello, {name}!"))
}

async fn broken() -> Result<String, ErrorObject> {
    Err(ErrorObject::new(7, "broken"))
}

fn server() -> Server {
    Server::new("tasks", "1.0.0")
        .tool(Tool::new("plain", async || "done"))
        .tool(Tool::new("quick", async || "done").task(When::After(Duration::MAX)))
        .tool(Tool::new("train", async || "trained").task(When::Required))
        .tool(Tool::new("hello", hello).task(When::Offered))
        .tool(Tool::new("wrong", async || Err::<String, _>(ToolError::from("no luck"))).task(When::Offered))
        .tool(Tool::new("broken", broken).task(When::Offered))
        .tasks(Tasks::new(MemoryTasks::new()).keep_for(Duration::from_secs(3600)))
}

/// A client on a pipe that has no other caller.
struct Client {
    pipe: Pipe,
    next: i64,
    /// Messages that were no answers.
    told: Vec<Value>,
}

impl Client {
    async fn of(server: Server) -> Self {
        let mut pipe = Pipe::open_for(server, Peer { is_only: true, ..Peer::default() });
        pipe.call(&initialize(V2025_11_25, &everything())).await;
        pipe.send(&initialized()).await;
        Self { pipe, next: 1, told: Vec::new() }
    }

    /// The answer to a request. Questions on the way to it are answered with these names.
    async fn asked(&mut self, method: &str, params: Value, names: &[&str]) -> Value {
        let (id, mut names) = (self.next, names.iter());
        self.next += 1;
        self.pipe.send(&request(id, method, params)).await;
        loop {
            let message = self.pipe.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            if message.get("id").is_some() {
                let name = names.next().unwrap_or_else(|| panic!("one question more: {message}"));
                self.pipe.send(&accept(&message, json!({ "name": name }))).await;
            }
            self.told.push(message);
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.asked(method, params, &[]).await
    }

    /// The next message that `is` one of these.
    async fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        let reading = async {
            loop {
                let message = self.pipe.receive().await;
                if is(&message) {
                    return message;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), reading).await.expect("such a message in time")
    }

    async fn start(&mut self, tool: &str) -> String {
        let created = self.call("tools/call", json!({ "name": tool, "task": {} })).await;
        let id = created["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("a task: {created}")).to_owned()
    }

    async fn code(&mut self, method: &str, params: Value) -> i64 {
        let answer = self.call(method, params).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
    }
}

/// T27: the handshake of 2025-11-25 names tasks, with a list only where a caller has tasks of its own; `tools/list` says of each
/// tool whether it can be called as one. No earlier revision has any of it.
#[tokio::test]
async fn the_handshake_names_tasks() {
    let all = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    let unlisted = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    let ada = Peer { principal: Some(Principal::new("ada")), ..Peer::default() };
    let only = Peer { is_only: true, ..Peer::default() };
    for (peer, tasks) in [(ada, &all), (only, &all), (Peer::default(), &unlisted)] {
        let mut pipe = Pipe::open_for(server(), peer);
        let agreed = pipe.call(&initialize(V2025_11_25, &everything())).await;
        assert_eq!(agreed["result"]["capabilities"]["tasks"], *tasks);
        assert!(agreed["result"]["capabilities"].get("extensions").is_none(), "{agreed}");
        let listed = pipe.call(&request(1, "tools/list", json!({}))).await;
        let tools = listed["result"]["tools"].as_array().expect("tools");
        for (name, support) in
            [("plain", json!(null)), ("quick", json!("optional")), ("train", json!("required"))]
        {
            let tool = tools.iter().find(|tool| tool["name"] == name).expect(name);
            assert_eq!(tool["execution"]["taskSupport"], support, "{name}");
        }
        let list = pipe.call(&request(2, "tasks/list", json!({}))).await;
        assert_eq!(list.get("error").is_none(), tasks.get("list").is_some(), "{list}");
    }
    let mut older = Pipe::agreed(server(), "2025-06-18", &everything()).await;
    let call = request(1, "tools/call", json!({ "name": "quick", "task": { "ttl": 1000 } }));
    assert_eq!(text(&older.call(&call).await), "done");
    let listed = older.call(&request(2, "tools/list", json!({}))).await;
    assert!(!listed.to_string().contains("taskSupport"), "{listed}");
    for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
        assert_eq!(older.call(&request(3, method, json!({}))).await["error"]["code"], -32601, "{method}");
    }
}

/// M6, T27: with a ledger, a call that is repeated with its caller's key names the task that it became.
#[tokio::test]
async fn a_repeated_call_names_its_task() {
    let mut client = Client::of(server().ledger(MemoryLedger::new())).await;
    let call = json!({ "name": "train", "task": {}, "_meta": { IDEMPOTENCY_KEY: "k" } });
    let created = client.call("tools/call", call.clone()).await;
    assert!(created["result"]["task"]["taskId"].is_string(), "{created}");
    assert_eq!(client.call("tools/call", call).await["result"], created["result"]);
    let list = client.call("tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"].as_array().map(Vec::len), Some(1), "{list}");
}

/// T27: a call with `task` is a task from the start, whose `ttl` is capped; its result is that of the call, with the related task.
#[tokio::test]
async fn a_call_is_a_task_from_the_start() {
    let mut client = Client::of(server()).await;
    for (wanted, ttl) in
        [(json!({}), 3_600_000), (json!({ "ttl": 60_000 }), 60_000), (json!({ "ttl": 1e15 }), 3_600_000)]
    {
        let created = client.call("tools/call", json!({ "name": "quick", "task": wanted })).await;
        let task = &created["result"]["task"];
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(ttl)), "{created}");
        assert!(created["result"].get("resultType").is_none(), "L5: {created}");
        let result = client.call("tasks/result", json!({ "taskId": task["taskId"] })).await;
        assert_eq!(text(&result), "done");
        let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": task["taskId"] } });
        assert_eq!(result["result"]["_meta"], related);
        let done = client.call("tasks/get", json!({ "taskId": task["taskId"] })).await;
        assert_eq!((&done["result"]["status"], &done["result"]["ttl"]), (&json!("completed"), &json!(ttl)));
    }
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(3), "{listed}");
    assert_eq!(client.code("tools/call", json!({ "name": "quick", "task": true })).await, -32602);
    assert_eq!(text(&client.call("tools/call", json!({ "name": "quick" })).await), "done");
}

/// T27: a `ttl` has at least a second and at most what the author allows, to the millisecond; a `task` that is no object and a `ttl`
/// that is no time are -32602.
#[tokio::test]
async fn a_ttl_is_a_time() {
    let mut client = Client::of(server()).await;
    for (wanted, ttl) in [
        (r#"{"ttl":0}"#, 1_000),
        (r#"{"ttl":0.5}"#, 1_000),
        (r#"{"ttl":60000.9}"#, 60_000),
        (r#"{"ttl":3600001}"#, 3_600_000),
        (r#"{"ttl":1e300}"#, 3_600_000),
        (r#"{"ttl":null}"#, 3_600_000),
    ] {
        let task: Value = serde_json::from_str(wanted).expect("JSON");
        let created = client.call("tools/call", json!({ "name": "quick", "task": task })).await;
        assert_eq!(created["result"]["task"]["ttl"], ttl, "{wanted}: {created}");
    }
    let wrong =
        [json!({ "ttl": -1 }), json!({ "ttl": "60000" }), json!({ "ttl": true }), json!([]), json!("x")];
    for task in wrong {
        let code = client.code("tools/call", json!({ "name": "quick", "task": task })).await;
        assert_eq!(code, -32602, "{task}");
    }
}

/// T27: a tool that has to be called as a task and is not, and one that must not be and is, are -32601; so are the methods of
/// other dialects.
#[tokio::test]
async fn a_tool_says_how_it_is_called() {
    let mut client = Client::of(server()).await;
    assert_eq!(client.code("tools/call", json!({ "name": "train" })).await, -32601);
    assert_eq!(client.code("tools/call", json!({ "name": "plain", "task": {} })).await, -32601);
    for method in ["tasks/update", "tasks/input_response"] {
        assert_eq!(
            client.code(method, json!({ "taskId": "x", "inputResponses": {} })).await,
            -32601,
            "{method}"
        );
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(client.code(method, json!({ "taskId": "x" })).await, -32602, "{method}");
    }
}

/// T27: `tasks/result` waits to the end, also through questions, which are requests that name the task; the client hears of
/// the changes.
#[tokio::test]
async fn the_result_waits_through_questions() {
    let mut client = Client::of(server()).await;
    let id = client.start("hello").await;
    let result = client.asked("tasks/result", json!({ "taskId": id }), &["A", "Ada"]).await;
    assert_eq!(text(&result), "Hello, Ada!");
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
    let questions: Vec<&Value> = client.told.iter().filter(|told| told.get("id").is_some()).collect();
    assert_eq!(questions.len(), 2, "{:?}", client.told);
    for question in questions {
        assert_eq!(
            (&question["method"], &question["params"]["_meta"]),
            (&json!("elicitation/create"), &related)
        );
    }
    while !client.told.iter().any(|told| told["params"]["status"] == "completed") {
        let told = client.pipe.receive().await;
        client.told.push(told);
    }
    let statuses = client.told.iter().filter(|told| told["method"] == "notifications/tasks/status");
    let mut any = false;
    for told in statuses {
        assert_eq!((&told["params"]["taskId"], told["params"].get("_meta")), (&json!(id), None), "{told}");
        any = true;
    }
    assert!(any, "{:?}", client.told);
}

/// T3, T27: a tool that failed is a failed task, whose result is the tool's; an error of the call is the error of `tasks/result`.
#[tokio::test]
async fn a_failed_tool_is_a_failed_task() {
    let mut client = Client::of(server()).await;
    let id = client.start("wrong").await;
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!((text(&result), &result["result"]["isError"]), ("no luck", &json!(true)));
    let task = client.call("tasks/get", json!({ "taskId": id })).await;
    let (status, message) = (&task["result"]["status"], &task["result"]["statusMessage"]);
    assert_eq!((status, message), (&json!("failed"), &json!("no luck")));
    let id = client.start("broken").await;
    assert_eq!(client.code("tasks/result", json!({ "taskId": id })).await, 7);
    let task = client.call("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["result"]["status"], "failed", "{task}");
}

/// T27, N2: a `progressToken` stays valid for the life of a task: progress goes on after the call was answered, and only ever
/// increases.
#[tokio::test]
async fn progress_goes_on_in_a_task() {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let climb = move |progress: Progress| {
        let gate = Arc::clone(&opened);
        async move {
            for step in [1, 3, 2] {
                gate.notified().await;
                progress.report((step, 3, format!("step {step}")));
            }
            "up"
        }
    };
    let server = server().tool(Tool::new("climb", climb).task(When::Offered));
    let mut client = Client::of(server).await;
    let params = json!({ "name": "climb", "task": {}, "_meta": { "progressToken": "mine" } });
    let created = client.call("tools/call", params).await;
    let id = created["result"]["task"]["taskId"].clone();
    for (progress, message) in [(1, "step 1"), (3, "step 3")] {
        gate.notify_one();
        let mut told = client.pipe.receive().await;
        while told["method"] == "notifications/tasks/status" {
            told = client.pipe.receive().await;
        }
        let params = json!({ "progressToken": "mine", "progress": progress, "total": 3, "message": message });
        assert_eq!((&told["method"], &told["params"]), (&json!("notifications/progress"), &params));
    }
    gate.notify_one();
    assert_eq!(text(&client.call("tasks/result", json!({ "taskId": id })).await), "up");
    while !client.told.iter().any(|told| told["params"]["status"] == "completed") {
        let told = client.pipe.receive().await;
        client.told.push(told);
    }
    let again = client.told.iter().find(|told| told["method"] == "notifications/progress");
    assert!(again.is_none(), "{again:?}");
}

/// T27: `tasks/cancel` returns the task, cancelled; one that has ended is -32602.
#[tokio::test]
async fn a_cancelled_task_is_returned() {
    let mut client = Client::of(server()).await;
    let id = client.start("hello").await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(client.code("tasks/cancel", json!({ "taskId": id })).await, -32602);
    assert_eq!(client.code("tasks/result", json!({ "taskId": id })).await, -32602);
}

/// T27: the same in a session over HTTP: the questions are on the stream of `tasks/result`. Without a principal there is no list.
#[tokio::test]
async fn a_task_asks_over_http() {
    let client = Web::new(server()).session(V2025_11_25, &everything()).await;
    let call = request(1, "tools/call", json!({ "name": "hello", "task": {} }));
    let created = client.post(&call).await.json().await;
    let id = &created["result"]["task"]["taskId"];
    let mut stream = client.post(&request(2, "tasks/result", json!({ "taskId": id }))).await;
    let question = loop {
        let event = stream.event().await.expect("a question");
        if !event.data.is_empty() {
            break event.json();
        }
    };
    assert_eq!(question["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *id);
    assert_eq!(client.post(&accept(&question, json!({ "name": "Ada" }))).await.status, 202);
    let result = stream.event().await.expect("the result").json();
    assert_eq!(text(&result), "Hello, Ada!");
    let list = client.post(&request(3, "tasks/list", json!({}))).await.json().await;
    assert_eq!(list["error"]["code"], -32601, "{list}");
}

/// T27, T4: a task that works while it asks is answered as it goes: a question that its handler drops is cancelled, one that it asks
/// later is sent beside the first, and each answer reaches the handler at once.
#[tokio::test]
async fn questions_of_a_task_that_works_come_and_go() {
    let [go, late, heard] = [(); 3].map(|()| Arc::new(Notify::new()));
    let own = [&go, &late, &heard].map(Arc::clone);
    let works = Tool::new("works", move |ask: Ask| {
        let [go, late, heard] = own.clone();
        async move {
            let work = ask.once("work", |_| async {
                go.notified().await;
                Ok::<_, ToolError>(())
            });
            let first = async {
                let name = tokio::select! {
                    name = ask.form::<Name>("dropped", "Dropped?") => name?,
                    () = late.notified() => ask.form::<Name>("later", "Later?").await?,
                };
                heard.notify_one();
                Ok::<_, ToolError>(name.name)
            };
            let second = async {
                let name = ask.form::<Name>("kept", "Kept?").await?;
                heard.notify_one();
                Ok::<_, ToolError>(name.name)
            };
            let ((), first, second) = tokio::try_join!(work, first, second)?;
            Ok::<_, ToolError>(format!("{first} {second}"))
        }
    });
    let tasks = Tasks::new(MemoryTasks::new());
    let server = Server::new("tasks", "1.0.0").tool(works.task(When::Required)).tasks(tasks);
    let mut client = Client::of(server).await;
    let id = client.start("works").await;
    client.pipe.send(&request(50, "tasks/result", json!({ "taskId": id }))).await;
    let is_question = |message: &Value| message["method"] == "elicitation/create";
    let (dropped, kept) = (client.until(is_question).await, client.until(is_question).await);
    assert_eq!(
        (&dropped["params"]["message"], &kept["params"]["message"]),
        (&json!("Dropped?"), &json!("Kept?"))
    );
    late.notify_one();
    let cancelled = client.until(|message| message["method"] == "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], dropped["id"]);
    let later = client.until(is_question).await;
    client.pipe.send(&accept(&later, json!({ "name": "later" }))).await;
    let hears = async || tokio::time::timeout(Duration::from_secs(10), heard.notified()).await;
    hears().await.expect("its answer, with another open");
    client.pipe.send(&accept(&dropped, json!({ "name": "late" }))).await;
    client.pipe.send(&accept(&kept, json!({ "name": "kept" }))).await;
    hears().await.expect("the last answer");
    go.notify_one();
    let result = client.until(|message| message["id"] == 50).await;
    assert_eq!(text(&result), "later kept", "{result}");
}

/// T27, T4: a task that has asked beside a step, at 2025-11-25: `tasks/get`, `tasks/result` and the notification of each state.
#[tokio::test]
async fn a_task_that_works_while_it_asks_at_2025_11_25() {
    for state in ["asks and works", "asks only", "answered and works", "cancelled", "expired"] {
        let machine = crate::tasks::working::Machine::default();
        let tasks = Tasks::new(MemoryTasks::new());
        let server = Server::new("tasks", "1.0.0").tool(machine.tool()).tasks(tasks);
        let mut client = Client::of(server).await;
        let ttl = if state == "expired" { 1_000 } else { 60_000 };
        let call = json!({ "name": "boot", "task": { "ttl": ttl } });
        let created = client.call("tools/call", call).await;
        let about = json!({ "taskId": created["result"]["task"]["taskId"] });
        let status = |status: &'static str| {
            move |message: &Value| {
                message["method"] == "notifications/tasks/status" && message["params"]["status"] == status
            }
        };
        // The time of the last may be over before it has asked.
        if state != "expired" {
            client.until(status("input_required")).await;
            machine.booting.notified().await;
        }
        if state == "asks only" {
            machine.booted.notify_one();
            machine.dropped.notified().await;
        }
        if state == "expired" {
            client.until(status("failed")).await;
        } else if state == "cancelled" {
            machine.booted.notify_one();
            client.pipe.send(&request(60, "tasks/cancel", about.clone())).await;
            client.until(|message| message["id"] == 60).await;
        } else {
            client.pipe.send(&request(61, "tasks/result", about.clone())).await;
            let question = client.until(|message| message["method"] == "elicitation/create").await;
            assert_eq!(question["params"]["message"], "Which name?", "{state}");
            if state == "answered and works" {
                client.pipe.send(&accept(&question, json!({ "name": "web" }))).await;
                client.until(status("working")).await;
                machine.named.notified().await;
            }
        }
        client.pipe.send(&request(62, "tasks/get", about.clone())).await;
        let task = client.until(|message| message["id"] == 62).await;
        let (expected, code) = match state {
            "asks and works" | "asks only" => ("input_required", None),
            "answered and works" => ("working", None),
            "cancelled" => ("cancelled", Some(-32602)),
            _ => ("failed", Some(-32603)),
        };
        assert_eq!(task["result"]["status"], expected, "{state}: {task}");
        match code {
            Some(code) => assert_eq!(client.code("tasks/result", about).await, code, "{state}"),
            None if state == "answered and works" => {
                machine.booted.notify_one();
                let result = client.until(|message| message["id"] == 61).await;
                assert_eq!(text(&result), "web is at 10.0.0.7");
            }
            None => {}
        }
    }
}

/// T27, T4: the request for a question that a handler drops is cancelled at once, though the task asks for nothing else.
#[tokio::test]
async fn a_dropped_question_is_cancelled_while_its_task_works() {
    let [go, late] = [(); 2].map(|()| Arc::new(Notify::new()));
    let own = [&go, &late].map(Arc::clone);
    let works = Tool::new("works", move |ask: Ask| {
        let [go, late] = own.clone();
        async move {
            let work = ask.once("work", |_| async {
                go.notified().await;
                Ok::<_, ToolError>(())
            });
            let asks = async {
                tokio::select! {
                    name = ask.form::<Name>("name", "Which?") => Ok::<_, ToolError>(name?.name),
                    () = late.notified() => Ok("nobody".to_owned()),
                }
            };
            let ((), name) = tokio::try_join!(work, asks)?;
            Ok::<_, ToolError>(name)
        }
    });
    let tasks = Tasks::new(MemoryTasks::new());
    let server = Server::new("tasks", "1.0.0").tool(works.task(When::Required)).tasks(tasks);
    let mut client = Client::of(server).await;
    let id = client.start("works").await;
    client.pipe.send(&request(50, "tasks/result", json!({ "taskId": id }))).await;
    let question = client.until(|message| message["method"] == "elicitation/create").await;
    late.notify_one();
    let cancelled = client.until(|message| message["method"] == "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    go.notify_one();
    assert_eq!(text(&client.until(|message| message["id"] == 50).await), "nobody");
}

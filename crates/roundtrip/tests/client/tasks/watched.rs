//! Tasks that are waited for by `subscriptions/listen`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use roundtrip::client::{BoxFuture, Incoming, Outgoing, Transport};
use roundtrip::{Change, Client, Error, FormRequest};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep};

use super::{asking, completed, created, task, working};
use crate::fixture::text;
use crate::rounds::script::party;

/// A message on the stream of changes, after a while.
type Told = (u64, Value);

/// A server that tells of its tasks so, and shows them like this when asked.
struct Telling {
    agrees: bool,
    told: Mutex<Option<Vec<Told>>>,
    looks: Mutex<VecDeque<Value>>,
    log: Arc<Mutex<Vec<String>>>,
}

fn telling(agrees: bool, told: Vec<Told>, looks: &[Value]) -> (Client, Arc<Mutex<Vec<String>>>) {
    let log = Arc::<Mutex<Vec<String>>>::default();
    let looks = Mutex::new(looks.iter().cloned().collect());
    let server = Telling { agrees, told: Mutex::new(Some(told)), looks, log: Arc::clone(&log) };
    (Client::new(server), log)
}

impl Telling {
    fn stream(&self, id: &Value) -> Vec<Told> {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let ids = if self.agrees { json!(["t-1"]) } else { json!([]) };
        let filter = json!({ "_meta": meta, "notifications": { "taskIds": ids } });
        let told = self.told.lock().expect("told").take().unwrap_or_default();
        let tagged = told.into_iter().map(|(after, mut task)| {
            task["_meta"] = meta.clone();
            (after, json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": task }))
        });
        let first = json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": filter,
        });
        std::iter::once((0, first)).chain(tagged).collect()
    }
}

impl Transport for Telling {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let request: Value = serde_json::from_slice(&outgoing.message).expect("json");
        self.log.lock().expect("a log").push(outgoing.method.to_owned());
        let result = match outgoing.method {
            "subscriptions/listen" => {
                let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
                assert_eq!(declared["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
                assert_eq!(request["params"]["notifications"], json!({ "taskIds": ["t-1"] }));
                let messages = self.stream(&request["id"]).into();
                return Box::pin(async move { Ok(Box::pin(Messages { messages, wait: None }) as Incoming) });
            }
            "tools/call" => created(),
            "tasks/get" => {
                let mut looks = self.looks.lock().expect("looks");
                if looks.len() > 1 { looks.pop_front().expect("a look") } else { looks[0].clone() }
            }
            _ => json!({ "resultType": "complete" }),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        let messages = VecDeque::from([(0, answer)]);
        Box::pin(async move { Ok(Box::pin(Messages { messages, wait: None }) as Incoming) })
    }
}

/// Messages, each a number of seconds after the one before; then silence.
struct Messages {
    messages: VecDeque<Told>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Stream for Messages {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some((after, message)) = self.messages.front().cloned() else { return Poll::Pending };
        if message.is_null() {
            return Poll::Ready(None);
        }
        let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(Duration::from_secs(after))));
        std::task::ready!(wait.as_mut().poll(cx));
        self.wait = None;
        self.messages.pop_front();
        Poll::Ready(Some(Ok(message.to_string().into())))
    }
}

fn count(log: &Mutex<Vec<String>>, method: &str) -> usize {
    log.lock().expect("a log").iter().filter(|sent| *sent == method).count()
}

/// T9, T26: a task that is still at work after four looks is listened to, and its call ends when the server tells of its end;
/// no look is made that the server did not ask for.
#[tokio::test(start_paused = true)]
async fn a_task_is_listened_to() {
    let (client, log) = telling(true, vec![(7, completed())], &[working()]);
    let begun = Instant::now();
    assert_eq!(text(&client.call_tool("book", ()).await.expect("a result")), "done");
    assert_eq!(begun.elapsed(), Duration::from_secs(20 + 7));
    assert_eq!((count(&log, "subscriptions/listen"), count(&log, "tasks/get")), (1, 5));
}

/// T26: a task that is listened to is looked at now and then: a stream may break unnoticed.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_not_relied_on() {
    let looks: Vec<Value> = std::iter::repeat_n(working(), 7).chain([completed()]).collect();
    let (client, log) = telling(true, Vec::new(), &looks);
    let begun = Instant::now();
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(begun.elapsed(), Duration::from_secs(5 * 5 + 3 * 30));
    assert_eq!(count(&log, "tasks/get"), 8);
}

/// T26: a server that does not agree to tell, or stops telling, is asked at its pace as ever.
#[tokio::test(start_paused = true)]
async fn without_a_stream_a_task_is_looked_at() {
    let looks: Vec<Value> = std::iter::repeat_n(working(), 9).chain([completed()]).collect();
    for (agrees, told) in [(false, Vec::new()), (true, vec![(1, Value::Null)])] {
        let told: Vec<Told> = told;
        let (client, log) = telling(agrees, told, &looks);
        let begun = Instant::now();
        client.call_tool("book", ()).await.expect("a result");
        assert_eq!((begun.elapsed(), count(&log, "tasks/get")), (Duration::from_secs(50), 10));
        assert_eq!(count(&log, "subscriptions/listen"), 1, "it is tried once");
    }
}

/// T26: questions that the server tells of go to the handlers; a notification without what its status brings along is followed by
/// a look; one of another task is left alone; changes of the message reach the hook.
#[tokio::test(start_paused = true)]
async fn a_notification_counts_as_a_look() {
    let says = task("working", json!({ "statusMessage": "half way" }));
    let other = task("completed", json!({ "taskId": "t-2" }));
    let told = vec![(6, says), (1, other), (1, asking([("a", party())]))];
    let looks: Vec<Value> = std::iter::repeat_n(working(), 5).chain([completed()]).collect();
    let (client, log) = telling(true, told, &looks);
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "people": 2 })));
    let messages = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&messages);
    let call = client.call_tool("book", ()).on_status(move |task| {
        keep.lock().expect("a list").extend(task.status_message.clone());
    });
    let begun = Instant::now();
    assert_eq!(text(&call.await.expect("a result")), "done");
    assert_eq!(begun.elapsed(), Duration::from_secs(20 + 8 + 5));
    assert_eq!((count(&log, "tasks/update"), count(&log, "tasks/get")), (1, 6));
    assert_eq!(*messages.lock().expect("a list"), ["half way"]);

    let mut bare = completed();
    bare.as_object_mut().expect("an object").remove("result");
    let (client, log) = telling(true, vec![(7, bare)], &looks);
    let begun = Instant::now();
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(begun.elapsed(), Duration::from_millis(27_050));
    assert_eq!(count(&log, "tasks/get"), 6);
}

/// T9: a task's changes are a stream of the caller's, too.
#[tokio::test(start_paused = true)]
async fn changes_of_a_task_are_a_stream() {
    let (client, _log) = telling(true, vec![(1, working()), (1, completed())], &[working()]);
    let mut changes = client.listen().task("t-1").await.expect("a stream");
    assert_eq!(changes.acknowledged().task_ids, ["t-1"]);
    for status in ["working", "completed"] {
        let change = changes.next().await.expect("open").expect("a change");
        let Change::Task(task) = change else { panic!("a task, not {change:?}") };
        assert_eq!(task.status.as_str(), status);
    }
}

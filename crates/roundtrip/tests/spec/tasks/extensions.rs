//! Extensions of a request that are stored with its task.

use std::sync::Arc;

use roundtrip::server::{Call, FromCall, Needs, Rejection};
use roundtrip::task::{Millis, TaskStore as _};
use roundtrip::{Ask, Extension, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{TaskClient, key, says, server, text};

#[derive(Form)]
struct Name {
    name: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct Tenant {
    id: String,
}

async fn report(ask: Ask, Extension(tenant): Extension<Tenant>) -> Result<String, ToolError> {
    let Name { name } = ask.form("name", "Who?").await?;
    Ok(format!("{name} of {}", tenant.id))
}

fn reports(when: When) -> Tool {
    Tool::new("report", report).task(when)
}

fn acme() -> Tenant {
    Tenant { id: "acme".into() }
}

fn on(store: &Arc<MemoryTasks>) -> Tasks {
    Tasks::new(Arc::clone(store)).keep_extension::<Tenant>("tenant")
}

fn named(tasks: Tasks) -> Server {
    Server::new("tasks", "1.0.0").tasks(tasks)
}

/// T7: an extension that the author has the server keep is there in any worker, after every question. Clients do not see it.
#[tokio::test]
async fn an_extension_is_kept() {
    let store = Arc::new(MemoryTasks::new());
    let front = TaskClient::of(named(on(&store).at_once(0)).tool(reports(When::Required))).extension(acme());
    let id = front.start("report", json!({})).await;
    let has = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).contains(text);
    let work = store.load(&key(&id)).await.expect("a store").expect("a task");
    assert!(has(&work.call, r#""extensions":{"tenant":{"id":"acme"}}"#));
    let stored = store.read(&key(&id), Millis(0)).await.expect("a store").expect("a task");
    assert!(!has(&stored.view, "acme"));
    let _worker = named(on(&store).at_once(1)).tool(reports(When::Required)).build().expect("a worker");
    front.asks(&id).await;
    front.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&front.ended(&id).await), "Ada of acme");
    assert!(store.load(&key(&id)).await.expect("a store").is_none(), "only its workers needed it");
}

/// An extension that a request lacks is the same error, whether or not the call would become a task.
#[tokio::test]
async fn an_extension_that_is_missing_is_the_same_error() {
    let client = TaskClient::of(
        named(on(&Arc::default())).tool(reports(When::Required)).tool(Tool::new("plain", report)),
    );
    let call = |tool: &str| json!({ "name": tool });
    let plain = client.error("tools/call", call("plain")).await;
    assert_eq!(plain, (-32603, "the server is not set up for this call".to_owned()));
    assert_eq!(client.error("tools/call", call("report")).await, plain);
}

/// A handler of tasks takes no extension that is not kept, whoever reads it from the request, and no connection.
#[test]
fn an_extension_that_is_not_kept_is_found_at_start() {
    struct Own;
    impl FromCall for Own {
        fn from_call(_: &mut Call<'_>) -> Result<Self, Rejection> {
            Ok(Self)
        }
        fn needs(needs: &mut Needs) {
            needs.extension::<Tenant>();
        }
    }
    let own = || Tool::new("own", async |_: Own| "own").task(When::Offered);
    for tool in [reports(When::Offered), own()] {
        let error = server([tool]).build().expect_err("an extension").to_string();
        assert!(error.contains("Extension<") && error.contains("Tenant>"), "{error}");
        assert!(error.contains("`Tasks::keep_extension`"), "{error}");
    }
    let kept = named(on(&Arc::default()));
    let catalog = kept.catalog();
    let _kept = kept.tool(own()).build().expect("a server");
    catalog.add(reports(When::Offered)).expect("an extension that is kept");
    let number = Tool::new("number", async |Extension(number): Extension<u32>| number.to_string());
    catalog.add(number.task(When::Offered)).expect_err("one that is not");
    let plain = Tool::new("plain", async |Extension(number): Extension<u32>| number.to_string());
    catalog.add(plain).expect("no task, no store");
}

/// A tool that may be a task takes no connection.
#[cfg(feature = "legacy")]
#[test]
fn a_task_has_no_connection() {
    let streams = Tool::new("streams", async |_: roundtrip::legacy::ResumableStream| "streams");
    let error = server([streams.task(When::Offered)]).build().expect_err("a stream").to_string();
    assert!(error.contains("`ResumableStream`"), "{error}");
}

/// Each extension has a name of its own.
#[test]
fn extensions_have_names_of_their_own() {
    let same_type = Tasks::new(MemoryTasks::new()).keep_extension::<u32>("a").keep_extension::<u32>("b");
    let same_name = Tasks::new(MemoryTasks::new()).keep_extension::<u32>("a").keep_extension::<u64>("a");
    for tasks in [same_type, same_name] {
        let error = named(tasks).build().expect_err("a clash").to_string();
        assert!(error.contains("keep each extension once"), "{error}");
    }
}

/// T16: an extension that a later deployment cannot read leaves its task to others by name, and quotes nothing of it.
#[tokio::test]
async fn an_extension_that_changed_leaves_its_task_to_others() {
    #[derive(Clone, Deserialize, Serialize)]
    struct Changed {
        number: u64,
    }
    let store = Arc::new(MemoryTasks::new());
    let front = TaskClient::of(named(on(&store).at_once(0)).tool(reports(When::Required))).extension(acme());
    let id = front.start("report", json!({})).await;
    let changed = async |Extension(tenant): Extension<Changed>| tenant.number.to_string();
    let later = Tasks::new(Arc::clone(&store)).keep_extension::<Changed>("tenant");
    let _later =
        named(later).tool(Tool::new("report", changed).task(When::Required)).build().expect("a worker");
    let task = front.until(&id, |task| task["statusMessage"].is_string()).await;
    let message = "waiting for a worker that can run this task: the extension `tenant` of the task cannot be read any more";
    assert_eq!((&task["status"], &task["statusMessage"]), (&json!("working"), &json!(message)));
    let _back = named(on(&store)).tool(reports(When::Required)).build().expect("a worker");
    front.asks(&id).await;
}

/// Z1: an extension whose `Serialize` fails or panics is the problem of its call alone.
#[tokio::test]
async fn an_extension_that_cannot_be_stored_fails_its_call() {
    #[derive(Clone, Deserialize)]
    struct Fragile(bool);
    impl Serialize for Fragile {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            assert!(!self.0, "a bug");
            Err(serde::ser::Error::custom("secret"))
        }
    }
    let tool = Tool::new("fragile", async |_: Extension<Fragile>| "whole").task(When::Required);
    let plain = Tool::new("plain", async || "plain").task(When::Required);
    let tasks = Tasks::new(MemoryTasks::new()).keep_extension::<Fragile>("fragile");
    let client = TaskClient::of(named(tasks).tool(tool).tool(plain));
    for panics in [false, true] {
        let fragile = client.clone().extension(Fragile(panics));
        let (code, message) = fragile.error("tools/call", json!({ "name": "fragile" })).await;
        assert!(code == -32603 && !message.contains("secret"), "{code} {message}");
    }
    client.ended(&client.start("plain", json!({})).await).await;
}

//! Servers as child processes: a real one, which is this test binary once more, and small scripts that misbehave.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::Sent;
use roundtrip::{Change, Client, Error, Pending, Turn};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::fixture::{server, text};

const CHILD: &str = "ROUNDTRIP_TEST_CHILD";

/// Not a test of its own: the server that the others start.
#[tokio::test]
async fn serves_when_started_as_a_child() {
    if std::env::var_os(CHILD).is_some() {
        let server = server();
        let catalog = server.catalog();
        let server = server.around(move |call, next| {
            // Whoever reads the motto changes it.
            if call.target.as_deref() == Some("app://motto") {
                catalog.resource_updated("app://motto");
            }
            next.run()
        });
        server.serve_stdio().await.expect("served to the end");
    }
}

/// Not a test of its own: a server that takes its runtime down before it ends, as most programs do.
#[test]
fn serves_and_exits_when_started_as_a_child() {
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let served = runtime.block_on(server().serve_stdio());
        drop(runtime);
        // The test harness would want to say something on the same output.
        std::process::exit(if served.is_ok() { 0 } else { 9 });
    }
}

/// This binary once more, as a server.
fn child(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--quiet", "--nocapture", "--exact", part]).env(CHILD, "1");
    command
}

fn real() -> Client {
    Client::stdio(child("stdio::serves_when_started_as_a_child"))
}

/// A file of this process, gone with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("roundtrip-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Waits until somebody else has written to it.
    pub(crate) async fn written(&self) -> String {
        for _ in 0..1000 {
            let text = self.read();
            if text.ends_with('\n') {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody wrote to {}", self.0.display());
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Answers the question about its era, so that the rest of a script is about something else.
const MODERN: &str = r#"read -r probe; echo '{"jsonrpc":"2.0","id":"discover","result":{"resultType":"complete",
"supportedVersions":["2026-07-28"],"capabilities":{}}}' | tr -d '\n'; echo; "#;

fn script(text: &str, file: &Path) -> Client {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{MODERN}{text}")]).env("FILE", file);
    Client::stdio(command)
}

fn alive(pid: &str) -> bool {
    // A zombie nobody waits for is no longer alive.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_real_server_is_called_side_by_side_with_progress_and_changes() {
    let client = real();
    let hanging = tokio::spawn(client.call_tool("hang", ()).into_future());
    let steps: Arc<Mutex<Vec<f64>>> = Arc::default();
    let seen = Arc::clone(&steps);
    let observer = move |step: roundtrip::wire::ProgressNotificationParams| {
        seen.lock().expect("steps").push(step.progress);
    };
    let greet = client.call_tool("greet", json!({ "name": "Ada" })).into_future();
    let work = client.call_tool("work", ()).on_progress(observer).into_future();
    let (greeted, worked) = tokio::join!(greet, work);
    assert_eq!(text(&greeted.expect("a greeting")), "Hello, Ada!");
    assert_eq!(text(&worked.expect("a result")), "done");
    assert_eq!(*steps.lock().expect("steps"), [1.0, 2.0, 3.0]);
    assert_eq!(client.list_tools().await.expect("tools").len(), 6);

    let mut changes = client.listen().resource("app://motto").await.expect("a stream");
    client.read_resource("app://motto").await.expect("the motto");
    let change = changes.next().await.expect("open").expect("a change");
    assert_eq!(change, Change::Resource { uri: "app://motto".to_owned() });

    client.close().await;
    let error = hanging.await.expect("no panic").expect_err("closed under it");
    assert!(matches!(error, Error::Closed), "{error}");
    assert!(matches!(client.discover().await, Err(Error::Closed)), "closed is closed");
}

/// I5: calls of a child that dies fail with its exit status and what it said last, and the next call starts it anew.
#[tokio::test]
async fn a_child_that_dies_says_why_and_is_started_again() {
    let file = Scratch::new("dies");
    let answer = r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"back"}]}}\n"#;
    let client = script(
        &format!(
            r#"read line
               if [ -e "$FILE" ]; then printf '{answer}' 3; cat >/dev/null; exit 0; fi
               touch "$FILE"; for i in 1 2 3; do echo "line $i" >&2; done; printf 'out of cheese' >&2; exit 3"#
        ),
        &file.0,
    );
    let (first, second) =
        tokio::join!(client.call_tool("a", ()).into_future(), client.call_tool("b", ()).into_future());
    for error in [first.expect_err("dead"), second.expect_err("dead")] {
        let Error::Unreachable { why, sent, .. } = &error else { panic!("unreachable, not {error:?}") };
        let message = why.to_string();
        assert!(message.contains("exit status: 3"), "{message}");
        assert!(message.ends_with("line 1\nline 2\nline 3\nout of cheese"), "{message}");
        assert_eq!(*sent, Sent::Maybe);
    }
    assert_eq!(text(&client.call_tool("c", ()).await.expect("started again")), "back");
    client.close().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let error = Client::stdio(Command::new("/no/such/server")).discover().await.expect_err("not there");
    let Error::Unreachable { why, sent: Sent::No, .. } = &error else { panic!("not {error:?}") };
    let message = why.to_string();
    assert!(message.contains("/no/such/server"), "{message}");
}

/// C12: on stdio, giving up is told by one notification, and an answer that comes late is passed over.
#[tokio::test]
async fn giving_up_is_told_once() {
    let file = Scratch::new("cancel");
    let late = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    let client = script(
        &format!(
            r#"read a; echo "$a" >>"$FILE"; read b; echo "$b" >>"$FILE"; echo '{late}'
               read c; echo '{answer}'; cat >>"$FILE""#
        ),
        &file.0,
    );
    let error = client.call_tool("x", ()).timeout(Duration::from_millis(50)).await.expect_err("no answer");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    client.call_tool("y", ()).await.expect("the second is answered");
    client.close().await;
    let lines: Vec<Value> =
        file.read().lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    assert_eq!(lines.len(), 2, "the request, and one notification: {lines:?}");
    assert_eq!(lines[1]["method"], "notifications/cancelled");
    assert_eq!(lines[1]["params"]["requestId"], lines[0]["id"]);
}

/// I3: a child that heeds neither the end of its input nor a request to end is killed, and its whole group with it.
#[tokio::test]
async fn closing_ends_the_whole_process_group() {
    let file = Scratch::new("group");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let client = script(
        &format!(
            r#"trap '' TERM; sleep 1000 & echo "$$ $!" >"$FILE"; read a; echo '{answer}'
               while :; do sleep 1000; done"#
        ),
        &file.0,
    );
    client.call_tool("x", ()).await.expect("an answer");
    let pids = file.written().await;
    assert!(pids.split_whitespace().all(alive), "{pids}");
    client.close().await;
    for pid in pids.split_whitespace() {
        for _ in 0..100 {
            if alive(pid) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert!(!alive(pid), "{pid} of {pids}");
    }
}

/// I3: a child that does not heed the end of its input is asked to end, and has time to tidy up, before it is made to.
#[tokio::test]
async fn closing_asks_before_it_kills() {
    let file = Scratch::new("ask");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let client = script(
        &format!(
            r#"trap 'echo tidied >"$FILE"; exit 0' TERM; read a; echo '{answer}'
               while :; do sleep 1000 & wait; done"#
        ),
        &file.0,
    );
    client.call_tool("x", ()).await.expect("an answer");
    client.close().await;
    assert_eq!(file.read(), "tidied\n");
}

/// I3: a child whose client is dropped sees the end of its input.
#[tokio::test]
async fn dropping_the_client_ends_the_child() {
    let file = Scratch::new("drop");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let client = script(&format!(r#"read a; echo '{answer}'; cat >/dev/null; echo gone >"$FILE""#), &file.0);
    client.call_tool("x", ()).await.expect("an answer");
    assert_eq!(file.read(), "");
    drop(client);
    assert_eq!(file.written().await, "gone\n");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_passed_over_and_requests_are_refused() {
    let file = Scratch::new("noise");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let request = r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#;
    let nameless = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}"#;
    let client = script(
        &format!(
            r#"echo "Welcome!"; echo '{{"level":"info"}}'; echo; read a; echo '{answer}'
               read b; echo '{request}'; read c; read d; echo '{nameless}'; cat >/dev/null"#
        ),
        &file.0,
    );
    client.call_tool("x", ()).await.expect("an answer");
    let error = client.call_tool("x", ()).await.expect_err("a request of the server's own");
    assert!(
        matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("roots/list")),
        "{error}"
    );
    let error = client.call_tool("x", ()).await.expect_err("an error without an id");
    assert!(matches!(&error, Error::Rejected(error) if error.error().code == -32700), "{error}");
    client.close().await;
}

/// A child that writes for ever is given up long before the call's patience ends, with its process; the next call starts another.
#[tokio::test]
async fn a_child_that_writes_anything_but_messages_is_given_up() {
    let file = Scratch::new("nonsense");
    let client = script(r#"echo $$ >>"$FILE"; exec yes"#, &file.0);
    for lives in 1..=2 {
        let error = client.call_tool("x", ()).await.expect_err("no message");
        let why = error.to_string();
        assert!(why.contains("1000 lines in a row that are not messages"), "{why}");
        assert_eq!(file.read().lines().count(), lives);
    }
    client.close().await;
    assert!(!file.read().lines().any(alive), "its processes have ended");
}

/// Banners and logs on standard output are passed over, as long as messages come between them.
#[tokio::test]
async fn lines_in_a_row_are_counted_from_the_last_message() {
    let file = Scratch::new("banners");
    let answer = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
    let banner = "yes banner | head -n 999";
    let text = format!(
        "{banner}; read a; echo '{}'; {banner}; read b; echo '{}'; cat >/dev/null",
        answer(1),
        answer(2)
    );
    let client = script(&text, &file.0);
    client.call_tool("x", ()).await.expect("an answer");
    client.call_tool("y", ()).await.expect("an answer");
    client.close().await;
}

/// I1: a line beyond the cap fails what is under way, with an error that says so, and the stream goes on.
#[tokio::test]
async fn a_line_without_end_fails_what_waits_and_nothing_later() {
    let file = Scratch::new("long");
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    let client = script(
        &format!(
            r#"read a; head -c 17000000 /dev/zero | tr '\0' x; echo; read cancelled; read b; echo '{answer}'
               cat >/dev/null"#
        ),
        &file.0,
    );
    let error = client.call_tool("x", ()).await.expect_err("a line too long");
    assert!(
        matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("longer than 16 MiB")),
        "{error}"
    );
    client.call_tool("y", ()).await.expect("the stream goes on");
    client.close().await;
}

/// N1: a stream of changes that nobody reads does not fill the memory: it ends, with an error that says so.
#[tokio::test]
async fn a_stream_that_falls_behind_ends() {
    let file = Scratch::new("lag");
    let params = r#""params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{}}"#;
    let acknowledged =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",{params}}}"#);
    let changed = format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed",{params}}}"#);
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    let client = script(
        &format!(
            r#"read a; echo '{acknowledged}'; i=0; while [ $i -lt 300 ]; do echo '{changed}'; i=$((i+1)); done
               read b; echo '{answer}'; cat >/dev/null"#
        ),
        &file.0,
    );
    let mut changes = client.listen().tools().await.expect("a stream");
    client.call_tool("x", ()).await.expect("answered after all those changes");
    let mut kept = 0;
    let error = loop {
        match changes.next().await.expect("an error before the end") {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(kept <= 257 && error.to_string().contains("behind"), "{kept} {error}");
    assert!(changes.next().await.is_none());
    client.close().await;
}

/// Arguments as a model may write them: over several lines, of which one is a request of its own.
pub(crate) fn spread_over_lines() -> Box<RawValue> {
    let forged = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"delete"}}"#;
    RawValue::from_string(format!("{{\n\"a\":\n{forged}\n\r\n}}")).expect("JSON")
}

/// I1: arguments and `_meta` that are spread over lines are one request, not several.
#[tokio::test]
async fn a_models_line_breaks_forge_no_request() {
    let file = Scratch::new("forged");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let client = script(
        &format!(r#"read -r a; printf '%s\n' "$a" >>"$FILE"; echo '{answer}'; cat >>"$FILE""#),
        &file.0,
    );
    let raw = spread_over_lines();
    client.call_tool("x", &raw).meta("com.example/m", &raw).await.expect("an answer");
    client.close().await;
    let lines: Vec<Value> =
        file.read().lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    let [request] = &lines[..] else { panic!("one request, not {lines:?}") };
    let said: Value = serde_json::from_str(raw.get()).expect("JSON");
    assert_eq!((&request["params"]["name"], &request["params"]["arguments"]), (&json!("x"), &said));
    assert_eq!(request["params"]["_meta"]["com.example/m"], said);
}

/// I1: a call that was stored by something that writes JSON over several lines is gone on with in one.
#[tokio::test]
async fn a_call_stored_over_several_lines_is_gone_on_with_in_one() {
    let file = Scratch::new("stored");
    let asks = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    let client = script(
        &format!(
            r#"read -r a; echo '{asks}'; read -r b; printf '%s\n' "$b" >>"$FILE"; echo '{answer}'; cat >>"$FILE""#
        ),
        &file.0,
    );
    let arguments = json!({ "list": [1, 2], "object": { "a": 1 } });
    let turn = client.call_tool("x", &arguments).meta("com.example/m", &arguments).one_round().await;
    let Turn::Asked(pending) = turn.expect("a turn") else { panic!("it is not over") };
    let stored = serde_json::to_value(&pending).expect("serialises");
    let stored = serde_json::to_string_pretty(&stored).expect("serialises");
    let pending: Pending = serde_json::from_str(&stored).expect("what was stored");
    let Turn::Done(_) = client.resume(pending).await.expect("a turn") else { panic!("it is over") };
    client.close().await;
    let lines: Vec<Value> =
        file.read().lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    let [request] = &lines[..] else { panic!("one request, not {lines:?}") };
    assert_eq!(request["params"]["arguments"], arguments);
    assert_eq!(request["params"]["_meta"]["com.example/m"], arguments);
}

/// I3: a server whose output is a socket that nobody reads, as under Node.js, ends when its input does.
#[tokio::test]
async fn a_server_whose_output_is_a_full_socket_ends() {
    let (output, unread) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    let mut command = child("stdio::serves_and_exits_when_started_as_a_child");
    command.stdin(Stdio::piped()).stdout(OwnedFd::from(output)).kill_on_drop(true);
    let mut server = command.spawn().expect("a server");
    let mut input = server.stdin.take().expect("its input");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for id in 0..1_000 {
        let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "_meta": meta } });
        input.write_all(format!("{list}\n").as_bytes()).await.expect("written");
    }
    drop(input);
    let ended = tokio::time::timeout(Duration::from_secs(20), server.wait()).await;
    assert_eq!(ended.expect("it ends").expect("a status").code(), Some(9));
    drop(unread);
}

/// N1, I5: a stream that reconnects is opened again once the child was started anew, tells of all that may have been missed, and
/// then of what changes; another ends with the error.
#[tokio::test]
async fn a_stream_is_opened_again_after_a_restart() {
    for reconnects in [true, false] {
        let file = Scratch::new(if reconnects { "listens" } else { "breaks" });
        let tagged = r#""_meta":{"io.modelcontextprotocol/subscriptionId":%s}"#;
        let filter = r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#;
        let method = r#""jsonrpc":"2.0","method":"notifications/"#;
        let client = script(
            &format!(
                r#"read -r line; id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
                   printf '{{{method}subscriptions/acknowledged","params":{{{tagged},{filter}}}}}\n' $id
                   if [ ! -e "$FILE" ]; then touch "$FILE"; exit 3; fi
                   printf '{{{method}prompts/list_changed","params":{{{tagged}}}}}\n' $id; cat >/dev/null"#
            ),
            &file.0,
        );
        let listen = client.listen().tools().prompts();
        let mut changes = if reconnects { listen.reconnecting() } else { listen }.await.expect("a stream");
        if reconnects {
            for expected in [Change::Tools, Change::Prompts, Change::Prompts] {
                assert_eq!(changes.next().await.expect("open").expect("a change"), expected);
            }
        } else {
            let error = changes.next().await.expect("an error").expect_err("the child is dead");
            assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
            assert!(changes.next().await.is_none());
        }
        client.close().await;
    }
}

//! Closing and dropping a client, while everything hangs.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use roundtrip::{Client, Error};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::peer::{modern, read};

/// Bounds what must not hang, generously.
pub(crate) async fn in_time<T>(work: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), work.into_future()).await.expect("in time")
}

/// A process group that holds a pipe open: its lines are read here, and the pipe's end is the end of the last of them.
struct Watched {
    lines: mpsc::UnboundedReceiver<String>,
    path: PathBuf,
}

impl Watched {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("roundtrip-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success(), "a pipe at {}", path.display());
        let (sender, lines) = mpsc::unbounded_channel();
        let opened = path.clone();
        std::thread::spawn(move || {
            // Opening waits for somebody to write.
            let pipe = BufReader::new(File::open(opened).expect("a pipe"));
            pipe.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { lines, path }
    }

    /// A client of a script, which has the pipe as its third stream.
    fn script(&self, text: &str) -> Client {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 3>\"$PIPE\"; {text}")]).env("PIPE", &self.path);
        Client::stdio(command)
    }

    async fn says(&mut self, line: &str) {
        assert_eq!(in_time(self.lines.recv()).await.as_deref(), Some(line));
    }

    /// Waits until no process of the group is left.
    async fn ended(&mut self) {
        assert_eq!(in_time(self.lines.recv()).await, None);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads what it is sent, and never says anything; has a child of its own, which does not heed the end of its input.
const MUTE: &str = "sleep 1000 & echo started >&3; cat >/dev/null; wait";

/// I3: closing does not wait for a handshake that hangs: the call fails, and the whole process group ends.
#[tokio::test]
async fn closing_ends_a_child_that_never_answers_the_handshake() {
    let mut child = Watched::new("mute-close");
    let client = child.script(MUTE);
    let call = tokio::spawn(client.call_tool("x", ()).into_future());
    child.says("started").await;
    in_time(client.close()).await;
    let error = in_time(call).await.expect("no panic").expect_err("closed");
    assert!(matches!(error, Error::Closed), "{error:?}");
    child.ended().await;
}

/// I3: dropping the last clone ends the whole process group, though a handshake is under way.
#[tokio::test]
async fn dropping_ends_a_child_that_never_answers_the_handshake() {
    let mut child = Watched::new("mute-drop");
    let client = child.script(MUTE);
    let call = client.call_tool("x", ()).into_future();
    tokio::select! {
        _ = call => panic!("nobody answers"),
        () = child.says("started") => {}
    }
    drop(client);
    child.ended().await;
}

/// I3: a child that reads nothing either is ended all the same, however much waits to be written to it.
#[tokio::test]
async fn dropping_ends_a_child_that_does_not_read() {
    let mut child = Watched::new("deaf-drop");
    let client = child.script("sleep 1000 & echo started >&3; trap '' TERM; wait; sleep 1000");
    let large = json!({ "text": "x".repeat(1 << 20) });
    let calls: Vec<_> = (0..100).map(|_| tokio::spawn(client.call_tool("x", &large).into_future())).collect();
    child.says("started").await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    for call in calls {
        let _ = call.await;
    }
    drop(client);
    child.ended().await;
}

/// I3: calls under way at a child that is closed fail at once, and say why.
#[tokio::test]
async fn closing_fails_the_calls_of_a_child() {
    let mut child = Watched::new("call-close");
    let found = r#"{"jsonrpc":"2.0","id":"discover","result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
    let client = child.script(&format!("read a; echo '{found}'; read b; echo called >&3; cat >/dev/null"));
    let call = tokio::spawn(client.call_tool("x", ()).into_future());
    child.says("called").await;
    in_time(client.close()).await;
    let error = in_time(call).await.expect("no panic").expect_err("closed");
    assert!(matches!(error, Error::Closed), "{error:?}");
    child.ended().await;
    assert!(matches!(client.call_tool("x", ()).await, Err(Error::Closed)), "closed is closed");
}

/// C12: closing ends calls at modern servers over HTTP, too; they are cancelled by hanging up.
#[tokio::test]
async fn closing_ends_the_calls_at_a_modern_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (hang, mut hanging) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = read(&mut stream).await;
            if request.body["method"] == "server/discover" {
                stream.write_all(&modern(&request)).await.expect("a client that listens");
            } else {
                hang.send(stream).expect("a test that waits");
            }
        }
    });
    let client = Client::http(url).expect("a client");
    let call = tokio::spawn(client.call_tool("x", ()).into_future());
    let mut called = in_time(hanging.recv()).await.expect("a call");
    in_time(client.close()).await;
    let error = in_time(call).await.expect("no panic").expect_err("closed");
    assert!(matches!(error, Error::Closed), "{error:?}");
    assert_eq!(in_time(called.read(&mut [0])).await.expect("no error"), 0, "it hangs up");
    let (again, clone) = (client.call_tool("x", ()).await, client.clone().list_tools().await);
    assert!(matches!((again, clone), (Err(Error::Closed), Err(Error::Closed))), "closed is closed");
}

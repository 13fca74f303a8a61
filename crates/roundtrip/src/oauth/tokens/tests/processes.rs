//! Tests with several processes on one store in a directory. Each process is this test, started again.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use roundtrip_core::seal::BoxFuture;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::*;
use crate::oauth::store::{FileStore, StoreError, StoreLock};

/// Variable with the directory of the store, in a process that a test has started.
const DIRECTORY: &str = "ROUNDTRIP_TOKENS";
/// Mark of the lines of a process: the harness prints lines of its own.
const MARK: &str = "process: ";

/// A directory that is deleted in the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("randomness");
        Self(std::env::temp_dir().join(format!("roundtrip-tokens-{:016x}", u64::from_ne_bytes(random))))
    }

    pub(super) fn open(&self) -> FileStore {
        FileStore::open(&self.0).expect("a directory").account("alice")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Writes a line for the test that has started this process.
fn say(line: &str) {
    println!("{MARK}{line}");
}

/// A store that says when a lock is asked for.
struct Telling(FileStore);

impl TokenStore for Telling {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.load(server)
    }

    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.save(server, record)
    }

    fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.delete(server)
    }

    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        say("locks");
        self.0.lock(server)
    }
}

/// An exchange that says when it was begun, and waits for a word: `go` or `crash`.
#[derive(Clone)]
struct Asked;

impl Exchange for Asked {
    async fn refresh(&self, old: &Grant) -> Result<Option<Grant>, AuthError> {
        say("exchanges");
        let word = BufReader::new(tokio::io::stdin()).lines().next_line().await;
        match word.expect("a word").as_deref() {
            Some("go") => issuer::rotate(old, 1),
            _ => std::process::abort(),
        }
    }
}

/// Gets a token as a process of a test, and says it.
async fn as_process(directory: &Path) {
    let tokens = over(Telling(FileStore::open(directory).unwrap().account("alice")));
    let token = token_of(tokens.token(&Asked).await);
    say(&format!("has {token}"));
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(test: &str, directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("our own path"))
            .args([
                "--exact",
                &format!("{}::{test}", module_path!().split_once("::").unwrap().1),
                "--nocapture",
            ])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, input, output }
    }

    /// Returns the next line that it says.
    async fn line(&mut self) -> Option<String> {
        while let Some(line) = self.output.next_line().await.expect("output") {
            if let Some((_, said)) = line.split_once(MARK) {
                return Some(said.to_owned());
            }
        }
        None
    }

    async fn tell(&mut self, word: &str) {
        self.input.write_all(format!("{word}\n").as_bytes()).await.expect("its input");
    }
}

async fn folder_with(seconds: i64) -> (Folder, FileStore) {
    let folder = Folder::new();
    let store = folder.open();
    let mut record = Record::default();
    record.sign_in(grant(1, life(seconds)));
    store.save(SERVER, &record).await.unwrap();
    (folder, store)
}

/// O80: processes that find one token over make one exchange, and all of them get its token.
#[tokio::test]
async fn processes_make_one_exchange() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return as_process(Path::new(&directory)).await;
    }
    let (folder, store) = folder_with(-1).await;
    let mut processes: Vec<_> =
        (0..4).map(|_| Process::start("processes_make_one_exchange", &folder.0)).collect();
    // All have read the old record, and found it over, before the first exchange ends.
    for process in &mut processes {
        assert_eq!(process.line().await.as_deref(), Some("locks"));
    }
    let mut exchanges = 0;
    for process in &mut processes {
        process.tell("go").await;
    }
    for process in &mut processes {
        let mut line = process.line().await;
        if line.as_deref() == Some("exchanges") {
            exchanges += 1;
            line = process.line().await;
        }
        assert_eq!(line.as_deref(), Some("has a2"));
        assert!(process.child.wait().await.unwrap().success());
    }
    assert_eq!(exchanges, 1);
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r2");
}

/// O82, O84: a process that crashes after its exchange leaves no lock; the token it used is tried again, and refused by name.
#[tokio::test]
async fn a_crash_in_the_exchange_leaves_no_lock() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return as_process(Path::new(&directory)).await;
    }
    let (folder, store) = folder_with(-1).await;
    let mut process = Process::start("a_crash_in_the_exchange_leaves_no_lock", &folder.0);
    assert_eq!(process.line().await.as_deref(), Some("locks"));
    assert_eq!(process.line().await.as_deref(), Some("exchanges"));
    let busy = store.clone().longest_wait(std::time::Duration::ZERO);
    assert!(matches!(busy.lock(SERVER).await, Err(StoreError::Busy { .. })));
    process.tell("crash").await;
    assert!(!process.child.wait().await.unwrap().success());

    let issuer = Issuer::answering(400, serde_json::json!({ "error": "invalid_grant" }));
    let error = over(store.clone()).token(&issuer).await.unwrap_err();
    assert!(matches!(error, AuthError::GrantOver(_)), "{error}");
    assert_eq!(stored(&store).await.refresh_token, None);
}

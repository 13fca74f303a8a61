//! A proxy in the environment: a test runs again, as a process whose environment names one.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Variable that is set in the process behind the proxy.
const BEHIND: &str = "ROUNDTRIP_TEST_BEHIND_PROXY";

/// Runs the work of a test in a process behind a proxy that refuses everything. Returns the first lines of what the proxy was
/// asked, or `None` in that process itself.
pub(crate) fn behind_proxy(test: &str, work: impl Future<Output = ()>) -> Option<Vec<String>> {
    if std::env::var_os(BEHIND).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work);
        return None;
    }
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", proxy.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    std::thread::spawn(move || proxy.incoming().flatten().for_each(|stream| refuse(stream, &told)));
    // The name of a test is its path without the crate.
    let test = test.split_once("::").expect("a path").1;
    let mut process = Command::new(std::env::current_exe().expect("a program"));
    process.args(["--exact", test, "--nocapture"]).env(BEHIND, "1");
    for name in ["NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "REQUEST_METHOD"] {
        process.env_remove(name);
    }
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        process.env(name, &url);
    }
    let output = process.output().expect("a process");
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let asked = asked.lock().expect("no panic").clone();
    assert!(
        output.status.success() && printed[0].contains("1 passed"),
        "{asked:?} {}{}",
        printed[0],
        printed[1]
    );
    Some(asked)
}

/// Writes down what the proxy is asked, and refuses it.
fn refuse(mut stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut head = vec![0; 8192];
    let read = stream.read(&mut head).unwrap_or_default();
    let line = String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned();
    asked.lock().expect("no panic").push(line);
    drop(stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
}

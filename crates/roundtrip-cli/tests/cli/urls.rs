//! Addresses of servers: what counts as this machine, and secrets that do not belong into a URL.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Folder, Served, command, ran, roundtrip};

/// Returns the first line of a request that a proxy gets, while the command asks this URL.
fn proxied(url: &str) -> String {
    proxied_by(command(&["list", url, "--timeout", "20"]))
}

/// Returns the first line of a request that a proxy gets from a command.
fn proxied_by(mut command: Command) -> String {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", proxy.local_addr().unwrap());
    for name in ["http_proxy", "HTTP_PROXY"] {
        command.env(name, &at);
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY");
    let asking = std::thread::spawn(move || ran(command.output().unwrap()));
    let mut line = String::new();
    proxy.set_nonblocking(true).unwrap();
    while line.is_empty() && !asking.is_finished() {
        if let Ok((mut stream, _)) = proxy.accept() {
            stream.set_nonblocking(false).unwrap();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let _ = stream
                .write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        std::thread::yield_now();
    }
    drop(proxy);
    asking.join().unwrap();
    line
}

/// A name that looks like an address of this machine is a name of the world, and goes by the proxy.
#[test]
fn a_name_is_not_an_address_of_this_machine() {
    for host in ["127.evil.example", "127.0.0.1.evil.example"] {
        let line = proxied(&format!("http://{host}/mcp"));
        assert!(line.contains(&format!("http://{host}/mcp")), "{host}: {line:?}");
    }
    for host in ["127.0.0.2:1", "localhost:1", "[::1]:1"] {
        assert_eq!(proxied(&format!("http://{host}/mcp")), "", "{host}");
    }
}

/// The key and the messages for a model on this machine stay on it.
#[test]
fn no_proxy_sees_what_a_model_on_this_machine_is_asked() {
    let served = Served::start(&[]);
    for (base, is_proxied) in [("http://127.0.0.1:1/v1", false), ("http://model.example/v1", true)] {
        let mut command = command(&["call", &served.url, "poem", "--model", "verse"]);
        command.env("OPENAI_BASE_URL", base).env("OPENAI_API_KEY", SECRET);
        assert_eq!(proxied_by(command).contains("/chat/completions"), is_proxied, "{base}");
    }
}

const SECRET: &str = "s3cr3t";

/// A user name and a password in a URL would be shown by other programs and kept in files: no command takes them, and none of
/// them shows them.
#[test]
fn user_info_in_a_url_is_refused_and_not_shown() {
    let folder = Folder::new("user-info");
    let url = format!("http://ada:{SECRET}@127.0.0.1:1/mcp");
    let entry = json!({ "url": "http://ada:${PASSWORD}@127.0.0.1:1/mcp" });
    let config = folder.file("mcp.json", &json!({ "mcpServers": { "shop": entry } }).to_string());
    let flow = json!({ "format": "roundtrip-flow", "version": 1, "server": { "url": url }, "pending": {} });
    let flow = folder.file("flow.json", &flow.to_string());
    let issuer = format!("https://ada:{SECRET}@login.example");
    for words in [
        &["call", &url, "greet"][..],
        &["call", &url, "greet", "--json"],
        &["list", &url],
        &["list", "--json", &url],
        &["read", &url, "notes://sea"],
        &["prompt", &url, "letter"],
        &["complete", &url, "letter", "name"],
        &["listen", &url],
        &["task", "status", &url, "id"],
        &["login", &url],
        &["login", "http://127.0.0.1:1/mcp", "--issuer", &issuer],
        &["login", "http://127.0.0.1:1/mcp", "--client-metadata", &issuer],
        &["logout", &url],
        &["whoami", &url],
        &["whoami", &url, "--json"],
        &["list", &url.replacen("127.0.0.1", "[", 1)],
        &["list", &url.replacen("http", "htp", 1)],
        &["list", "--config", &config, "shop"],
        &["whoami", "--config", &config, "shop"],
        &["resume", &flow],
        &["resume", &flow, &url],
    ] {
        let ran = ran(command(words).env("PASSWORD", SECRET).output().unwrap()).exits(2);
        assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET), "{words:?}: {ran:?}");
    }
    let refused = roundtrip(&["call", &url, "greet"]).exits(2);
    assert!(
        refused.err.contains("--header") && refused.err.contains("http://127.0.0.1:1/mcp"),
        "{refused:?}"
    );
    let error: Value = roundtrip(&["call", &url, "greet", "--json"]).exits(2).error();
    assert_eq!(error["kind"], "usage");
}

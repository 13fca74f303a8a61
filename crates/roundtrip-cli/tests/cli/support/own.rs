//! Servers with tools of a test's own.

use std::sync::mpsc;

use roundtrip::wire::ElicitSchema;
use roundtrip::{Question, Reply, Round, Server, Tool, ToolError};
use serde_json::Value;

/// Serves on a port of this machine for as long as the tests run. Returns the URL.
pub(crate) fn serve(server: Server) -> String {
    let (send, started) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bound = server.into_http().unwrap().bind("127.0.0.1:0").await.unwrap();
            send.send(format!("http://{}/mcp", bound.local_addr().unwrap())).unwrap();
            bound.until(std::future::pending()).await.unwrap();
        });
    });
    started.recv().unwrap()
}

/// Serves answers of a test's own at a port of this machine, for as long as the tests run. Returns the URL.
#[cfg(unix)]
pub(crate) fn serve_app(app: axum::Router) -> String {
    let (send, started) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(format!("http://{}/mcp", socket.local_addr().unwrap())).unwrap();
            axum::serve(socket, app).await.unwrap();
        });
    });
    started.recv().unwrap()
}

/// Serves the tool `fill`, which asks this form and returns its content as JSON.
pub(crate) fn serve_form(schema: Value) -> String {
    let schema: ElicitSchema = serde_json::from_value(schema).unwrap();
    let fill = move |round: Round| {
        let question = Question::form_of("form", "Fill this in", schema.clone());
        async move {
            let content = round.content(&question)?;
            let done = content.map(|content| Reply::text(Value::from(content).to_string()));
            Ok::<_, ToolError>(done.unwrap_or_else(|| round.ask([question])))
        }
    };
    serve(Server::new("own", "1.0.0").tool(Tool::new("fill", fill)))
}

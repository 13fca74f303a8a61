//! `roundtrip listen`: changes on a server, as they happen.

use clap::Args;
use roundtrip::client::Listen as Listening;
use roundtrip::{Change, Client};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::output::out;
use crate::printable::{printable, printable_json};
use crate::progress::Progress;
use crate::rows::Screen;
use crate::server::{Connect, Connection, Endpoint, address};

/// Listen for changes on a server, until it closes the stream or Ctrl-C
#[derive(Args)]
#[command(
    override_usage = "roundtrip listen [OPTIONS] <SERVER>\n       roundtrip listen [OPTIONS] -- <COMMAND>..",
    after_help = "Without `--resource` and `--task`, changes of all lists are shown.\n\n\
                  Example:\n  roundtrip listen http://127.0.0.1:8000/mcp --resource app://settings"
)]
pub(crate) struct Listen {
    /// The server, unless a command stands behind `--`
    #[arg(value_name = "SERVER", num_args = 0..)]
    words: Vec<String>,
    /// Resource whose contents are listened for
    #[arg(long = "resource", value_name = "URI")]
    resources: Vec<String>,
    /// Task that is listened for
    #[arg(long = "task", value_name = "ID")]
    tasks: Vec<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

impl Listen {
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.connect.config.as_ref())?;
        if let Some(word) = self.words.first() {
            let word = address::without_user_info(word);
            return Err(Failure::usage(format!("`{word}` is one word too many")));
        }
        let progress = Progress::new(self.json);
        let connection = Connection::open(endpoint, &self.connect, None, &progress).await?;
        connection.run(self.listen(&connection.client, &progress)).await
    }

    async fn listen(&self, client: &Client, progress: &Progress) -> Result<(), Failure> {
        let mut listen = client.listen();
        if self.resources.is_empty() && self.tasks.is_empty() {
            listen = listen.tools().prompts().resources();
        }
        listen = self.resources.iter().fold(listen, Listening::resource);
        listen = self.tasks.iter().fold(listen, Listening::task);
        let mut changes = listen.await?;
        progress.clear();
        let agreed = changes.acknowledged();
        if self.json {
            out!("{}", printable_json(&json!({ "listening": agreed }), false));
        } else {
            out!("{}", Screen::Out.rows("listening for ", &printable_json(agreed, false)));
        }
        while let Some(change) = changes.next().await {
            self.show(&change?);
        }
        Err(Failure::new(Exit::Transport, "the server has closed the stream"))
    }

    fn show(&self, change: &Change) {
        if self.json {
            out!("{}", printable_json(&as_json(change), false));
            return;
        }
        match change {
            Change::Tools => out!("the list of tools has changed"),
            Change::Prompts => out!("the list of prompts has changed"),
            Change::Resources => out!("the list of resources has changed"),
            Change::Resource { uri } => {
                out!("{}", Screen::Out.rows("resource ", &printable(&format!("{uri} has changed"))));
            }
            Change::Task(task) => {
                let why = task.status_message.as_deref().unwrap_or_default();
                let text = format!("{} is {} {why}", task.task_id, task.status);
                out!("{}", Screen::Out.rows("task ", &printable(&text)));
            }
            other => out!("{}", Screen::Out.rows("changed: ", &printable(&format!("{other:?}")))),
        }
    }
}

fn as_json(change: &Change) -> Value {
    match change {
        Change::Tools => json!({ "changed": "tools" }),
        Change::Prompts => json!({ "changed": "prompts" }),
        Change::Resources => json!({ "changed": "resources" }),
        Change::Resource { uri } => json!({ "changed": "resource", "uri": uri }),
        Change::Task(task) => json!({ "changed": "task", "task": task }),
        other => json!({ "changed": format!("{other:?}") }),
    }
}

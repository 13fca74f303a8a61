//! `roundtrip complete`: values for an argument of a prompt, or for a variable of a template.

use clap::Args;

use crate::exit::Failure;
use crate::output::{self, out};
use crate::printable::printable;
use crate::progress::Progress;
use crate::server::{Connect, Connection, Endpoint};

/// Complete an argument of a prompt, or a variable of a resource template
#[derive(Args)]
#[command(
    override_usage = "roundtrip complete [OPTIONS] <SERVER> <PROMPT|TEMPLATE> <ARGUMENT> [TYPED]\n       \
                      roundtrip complete [OPTIONS] <PROMPT|TEMPLATE> <ARGUMENT> [TYPED] -- <COMMAND>..",
    after_help = "Examples:\n  roundtrip complete http://127.0.0.1:8000/mcp review language ru\n  \
                  roundtrip complete http://127.0.0.1:8000/mcp 'shop://{customer}/orders' customer a"
)]
pub(crate) struct Complete {
    /// The server, unless a command stands behind `--`; the prompt or template; the argument; what was typed so far
    #[arg(value_name = "WORDS", num_args = 0..)]
    words: Vec<String>,
    /// Another argument that is known already
    #[arg(long, value_name = "KEY=VALUE")]
    context: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

impl Complete {
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.connect.config.as_ref())?;
        let (target, argument, typed) = match self.words.as_slice() {
            [target, argument] => (target, argument, ""),
            [target, argument, typed] => (target, argument, typed.as_str()),
            words => {
                let why = format!(
                    "give a prompt or template, its argument, and what was typed, not {} words",
                    words.len()
                );
                return Err(Failure::usage(why));
            }
        };
        let progress = Progress::new(self.json);
        let connection = Connection::open(endpoint, &self.connect, None, &progress).await?;
        let client = &connection.client;
        let mut call = if target.contains("://") || target.contains('{') {
            client.complete_resource(target, argument, typed)
        } else {
            client.complete_prompt(target, argument, typed)
        };
        for text in &self.context {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("`--context {text}`: give `key=value`")))?;
            call = call.context(key, value);
        }
        let work = async {
            let completion = call.await?.completion;
            progress.clear();
            if self.json {
                output::json(&completion);
            } else {
                completion.values.iter().for_each(|value| out!("{}", printable(value)));
            }
            Ok(())
        };
        connection.run(work).await
    }
}

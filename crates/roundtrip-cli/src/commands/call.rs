//! `roundtrip call`: a tool.

use clap::Args;
use roundtrip::wire::{CallToolResult, Tool};
use roundtrip::{Client, Turn};
use serde_json::{Map, Value};

use crate::arguments::ArgumentOptions;
use crate::exit::Failure;
use crate::nearest::nearest;
use crate::output;
use crate::server::Endpoint;
use crate::session::{Session, SessionOptions};
use crate::trace::size;

/// Call a tool
#[derive(Args)]
#[command(
    override_usage = "roundtrip call [OPTIONS] <SERVER> <TOOL>\n       roundtrip call [OPTIONS] <TOOL> -- <COMMAND>..",
    after_help = "Examples:\n  roundtrip call http://127.0.0.1:8000/mcp book_table --arg restaurant=Nopa\n  \
                  roundtrip call book_table --args '{\"restaurant\": \"Nopa\"}' -- npx my-server\n  \
                  roundtrip call --config .mcp.json shop checkout --answers answers.json --json"
)]
pub(crate) struct Call {
    /// The server, unless a command stands behind `--`; then the name of the tool
    #[arg(value_name = "SERVER TOOL", num_args = 0..)]
    words: Vec<String>,
    /// Print the task that the call becomes, and leave it to itself
    #[arg(long, conflicts_with = "save")]
    detach: bool,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    options: SessionOptions,
    #[command(flatten)]
    arguments: ArgumentOptions,
}

impl Call {
    pub(crate) fn is_json(&self) -> bool {
        self.options.json
    }

    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.options.connect.config.as_ref())?;
        let [tool] = self.words.as_slice() else {
            return Err(Failure::usage(format!("give the name of one tool, not {} words", self.words.len())));
        };
        let session = Session::open(endpoint, &self.options).await?;
        session.run(async |session| self.call(session, tool).await).await
    }

    async fn call(&self, session: &mut Session, tool: &str) -> Result<(), Failure> {
        let arguments = self.read_arguments(session, tool).await?;
        let what = format!("tools/call {tool}, {} bytes of arguments", size(&arguments));
        let call = session.client.call_tool(tool, arguments).one_round();
        let turn = match session.start(call, &what).await {
            Err(failure) if failure.is_invalid_params() => {
                return Err(named(&session.client, tool, failure).await);
            }
            turn => turn?,
        };
        let result = match turn {
            Turn::Task(task) if self.detach => {
                output::task(task.last_seen(), session.json);
                return Ok(());
            }
            turn => session.go_on(turn).await?,
        };
        // Some servers answer a call of no tool with the error of a tool.
        if result.is_error == Some(true) && !self.arguments.need_schema() {
            let tools = session.client.list_tools().await?;
            if !tools.iter().any(|known| known.name == *tool) {
                return Err(unknown(&tools, tool));
            }
        }
        conclude(session, &result)
    }

    async fn read_arguments(&self, session: &mut Session, tool: &str) -> Result<Map<String, Value>, Failure> {
        if !self.arguments.need_schema() {
            return self.arguments.whole().await;
        }
        let tools = session.listed("tools/list", async |client| client.list_tools().await).await?;
        let Some(found) = tools.iter().find(|found| found.name == tool) else {
            return Err(unknown(&tools, tool));
        };
        self.arguments.for_tool(&found.input_schema.to_value()).await
    }
}

/// Prints the result of a tool, and says how the command ends.
pub(crate) fn conclude(session: &Session, result: &CallToolResult) -> Result<(), Failure> {
    let printed = if session.json {
        output::json(result);
        output::failed(result)
    } else {
        output::tool(result, &session.progress.printed())
    };
    session.concluded(printed)
}

fn unknown(tools: &[Tool], tool: &str) -> Failure {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let near = nearest(tool, names.iter().copied());
    Failure::usage(format!("the server has no tool `{tool}`{near}")).with("tool", tool)
}

/// Names the nearest tools if a call was refused because there is no such tool.
async fn named(client: &Client, tool: &str, failure: Failure) -> Failure {
    match client.list_tools().await {
        Ok(tools) if !tools.iter().any(|known| known.name == tool) => unknown(&tools, tool),
        _ => failure,
    }
}

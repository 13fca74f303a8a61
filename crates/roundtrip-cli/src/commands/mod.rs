//! The subcommands, one a file.

mod call;
mod client_metadata;
mod complete;
mod flow;
pub(crate) mod keys;
mod list;
mod listen;
mod login;
mod logout;
mod prompt;
mod read;
mod resume;
mod serve;
mod shell;
mod task;
mod whoami;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::demo::{self, Demo, DemoInstance};
use crate::exit::Failure;
use crate::interrupt;
use crate::output;

/// The Model Context Protocol from a terminal.
#[derive(Parser)]
#[command(
    name = "roundtrip",
    version,
    after_help = "A SERVER is a URL, a name in a file of `--config`, or a command behind `--`.\n\n\
                  Exit codes: 0 done, 1 tool error or failed task, 2 usage, 3 transport, 4 declined or cancelled,\n\
                  5 sign-in needed, 6 JSON-RPC error, 7 timeout or too many rounds, 10 stopped at a question,\n\
                  130 interrupted"
)]
pub(crate) struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    List(list::List),
    Call(call::Call),
    Prompt(prompt::Prompt),
    Read(read::Read),
    Complete(complete::Complete),
    Listen(listen::Listen),
    #[command(subcommand)]
    Task(task::TaskCommand),
    Resume(resume::Resume),
    Login(login::Login),
    Logout(logout::Logout),
    Whoami(whoami::Whoami),
    ClientMetadata(client_metadata::ClientMetadata),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Flow(flow::Flow),
    Serve(serve::Serve),
    /// Play one call over three processes that share nothing but a key
    Demo(Demo),
    Completions(shell::Completions),
    Man(shell::Man),
    /// Serve one instance of the demo, which starts it
    #[command(hide = true)]
    DemoInstance(DemoInstance),
}

impl Command {
    /// Runs the command, and reports its error.
    pub(crate) async fn run(self) -> ExitCode {
        let (result, json) = self.what.run().await;
        match output::written(result) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                failure.report(json);
                failure.exit.into()
            }
        }
    }
}

impl What {
    /// Returns the outcome, and whether errors are wanted as JSON.
    async fn run(self) -> (Result<(), Failure>, bool) {
        let json = self.is_json();
        let result = match self {
            Self::List(list) => list.run().await,
            Self::Call(call) => call.run().await,
            Self::Prompt(prompt) => prompt.run().await,
            Self::Read(read) => read.run().await,
            Self::Complete(complete) => complete.run().await,
            Self::Listen(listen) => listen.run().await,
            Self::Task(task) => task.run().await,
            Self::Resume(resume) => resume.run().await,
            Self::Login(login) => login.run().await,
            Self::Logout(logout) => logout.run().await,
            Self::Whoami(whoami) => whoami.run().await,
            Self::ClientMetadata(metadata) => metadata.run(),
            Self::Keys(keys) => keys.run(),
            Self::Flow(flow) => flow.run(),
            Self::Serve(serve) => serve.run().await,
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
            Self::Demo(demo) => {
                interrupt::until(None, async { demo::run(&demo).await.map_err(Failure::from) }).await
            }
            Self::DemoInstance(instance) => demo::serve(&instance).await.map_err(Failure::from),
        };
        (result, json)
    }

    fn is_json(&self) -> bool {
        match self {
            Self::List(list) => list.is_json(),
            Self::Call(call) => call.is_json(),
            Self::Prompt(prompt) => prompt.is_json(),
            Self::Read(read) => read.is_json(),
            Self::Complete(complete) => complete.is_json(),
            Self::Listen(listen) => listen.is_json(),
            Self::Task(task) => task.is_json(),
            Self::Resume(resume) => resume.is_json(),
            Self::Whoami(whoami) => whoami.is_json(),
            Self::Keys(keys) => keys.is_json(),
            Self::Flow(flow) => flow.is_json(),
            Self::Login(_)
            | Self::Logout(_)
            | Self::ClientMetadata(_)
            | Self::Serve(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Demo(_)
            | Self::DemoInstance(_) => false,
        }
    }
}

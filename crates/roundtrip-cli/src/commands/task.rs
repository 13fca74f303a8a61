//! `roundtrip task`: tasks that calls have become.

use clap::{Args, Subcommand};
use roundtrip::{Task, Turn};

use super::call;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::server::Endpoint;
use crate::session::{Session, SessionOptions};

/// Look after a task
#[derive(Subcommand)]
pub(crate) enum TaskCommand {
    /// Wait for the result, answering its questions
    Wait(OneTask),
    /// Show its status and its questions
    Status(OneTask),
    /// Answer its questions, and do not wait
    Answer(OneTask),
    /// Cancel it
    Cancel(OneTask),
}

/// One task of a server.
#[derive(Args)]
#[command(
    after_help = "Example:\n  roundtrip task answer http://127.0.0.1:8000/mcp ID --answers answers.json"
)]
pub(crate) struct OneTask {
    /// The server, unless a command stands behind `--`; then the identifier of the task
    #[arg(value_name = "SERVER ID", num_args = 0..)]
    words: Vec<String>,
    /// The identifier, whatever it begins with: the server has chosen it
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    id: Option<String>,
    /// Tool that the task is a call of
    #[arg(long, value_name = "NAME", default_value = "")]
    tool: String,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    options: SessionOptions,
}

impl TaskCommand {
    pub(crate) fn is_json(&self) -> bool {
        let (Self::Wait(one) | Self::Status(one) | Self::Answer(one) | Self::Cancel(one)) = self;
        one.options.json
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Wait(one) => {
                one.with(async |session, task| {
                    let result = session.follow(task).await?;
                    call::conclude(session, &result)
                })
                .await
            }
            Self::Status(one) => {
                one.with(async |session, task| {
                    let seen = session.client.task(task).status().await?;
                    output::task(&seen, session.json);
                    Ok(())
                })
                .await
            }
            Self::Answer(one) => one.with(answer).await,
            Self::Cancel(one) => {
                one.with(async |session, task| Ok(session.client.task(task).cancel().await?)).await
            }
        }
    }
}

impl OneTask {
    async fn with(
        mut self,
        work: impl AsyncFnOnce(&mut Session, Task) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.options.connect.config.as_ref())?;
        self.words.extend(self.id);
        let [id] = self.words.as_slice() else {
            return Err(Failure::usage(format!(
                "give the identifier of one task, not {} words",
                self.words.len()
            )));
        };
        let task = Task::new(&self.tool, id);
        let session = Session::open(endpoint, &self.options).await?;
        session.run(async |session| work(session, task).await).await
    }
}

/// Answers the questions that are open now. The task is not waited for, before or after.
async fn answer(session: &mut Session, task: Task) -> Result<(), Failure> {
    let seen = session.client.task(task.clone()).status().await?;
    if seen.input_requests.is_empty() {
        let why = format!("the task asks nothing: it is {}", seen.status);
        return Err(Failure::new(Exit::Failed, why).with("status", seen.status.as_str()));
    }
    let Turn::Asked(pending) = session.next_of_task(task.clone()).await? else {
        return Err(Failure::new(Exit::Failed, "the task asks nothing any more"));
    };
    let answered = session.answered(pending).await?;
    // It goes on as a task, or has asked again: its status says which.
    let _: Turn = session.send(answered).await?;
    output::task(&session.client.task(task).status().await?, session.json);
    session.asker.all_used()
}

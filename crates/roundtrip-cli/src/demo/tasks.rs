//! `roundtrip demo --tasks`: a task on SQLite, whose process is killed whenever it has asked.

use std::error::Error;

use anstyle::AnsiColor;
use roundtrip::client::{Pending, Turn};
use roundtrip::wire::CallToolResult;
use serde_json::json;

use super::instance::Instance;
use super::stage::{self, BOLD, DIM, answer, say};
use super::tasks_folder::{DEPOSIT, HANDLER, TasksFolder};
use crate::output::out;
use crate::printable::printable;

/// Plays the demo. Neither its processes nor its files outlive it.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let folder = TasksFolder::create()?;
    out!("{BOLD}One task, one file.{BOLD:#} Each process that works on it dies once it has asked:\n");
    out!("  {}", folder.database().display());
    let mut play = Play { keys: stage::random_hex::<32>()?, asks_here: stage::asks_here(), folder, shown: 0 };
    let result = play.run().await?;
    stage::show(&result);
    play.conclude()?;
    stage::try_next(&[
        ("crates/roundtrip-cli/src/demo/instance.rs", "the tool you just called"),
        ("cargo run -p roundtrip --example long-task", "look after a task"),
        ("cargo run -p roundtrip --example rounds-then-task", "ask first, then work"),
        ("docs/manual/tasks.md", "write one of your own"),
    ]);
    Ok(())
}

/// A demo that is being played.
struct Play {
    keys: String,
    asks_here: bool,
    folder: TasksFolder,
    /// Number of lines of the log that have been shown.
    shown: usize,
}

impl Play {
    /// Makes the call, and looks after the task that it becomes.
    async fn run(&mut self) -> Result<CallToolResult, Box<dyn Error>> {
        let mut names = ["Ann", "Ben", "Cem"].into_iter();
        let mut at = self.start(names.next()).await?;
        say("client", AnsiColor::Cyan, &format!("calls book_table at {}", at.name));
        let mut turn = at.client.call_tool("book_table", json!({ "restaurant": "Nopa" })).one_round().await?;
        loop {
            turn = match turn {
                Turn::Task(task) => {
                    let turn = at.client.task(task).turn().await?;
                    self.show_log(at.name)?;
                    turn
                }
                Turn::Asked(pending) => {
                    let (next, answered) = self.asked(at, pending, names.next()).await?;
                    at = next;
                    say("client", AnsiColor::Cyan, &format!("answers the task at {}", at.name));
                    at.client.resume(answered).await?
                }
                Turn::Done(result) => {
                    say(at.name, AnsiColor::Green, "is done, and stores the result");
                    at.kill().await?;
                    return Ok(result);
                }
                _ => return Err("the call should have become a task".into()),
            }
        }
    }

    /// Kills the instance that has asked, answers, and starts the next.
    async fn asked(
        &self,
        at: Instance,
        pending: Pending,
        next: Option<&'static str>,
    ) -> Result<(Instance, Pending), Box<dyn Error>> {
        say(at.name, AnsiColor::Green, "has a question. The task waits for its answer in the file");
        stage::kill(at).await?;
        let answered = answer(pending, self.asks_here).await?;
        Ok((self.start(next).await?, answered))
    }

    async fn start(&self, name: Option<&'static str>) -> Result<Instance, Box<dyn Error>> {
        let name = name.ok_or("the task has asked more often than there are names")?;
        let instance = Instance::start(name, &self.keys, Some(self.folder.path())).await?;
        say(name, AnsiColor::Green, &format!("is started on the file: process {}", instance.pid));
        Ok(instance)
    }

    /// Shows the effects that an instance has logged.
    fn show_log(&mut self, name: &str) -> std::io::Result<()> {
        let log = self.folder.log()?;
        for line in &log[self.shown..] {
            let what = match line.as_str() {
                HANDLER => "runs the handler from its first line".to_owned(),
                DEPOSIT => "asks the restaurant for its deposit, once".to_owned(),
                other => printable(other),
            };
            say(name, AnsiColor::Green, &what);
        }
        self.shown = log.len();
        Ok(())
    }

    /// Shows how often the handler and its step ran, by the log.
    fn conclude(&self) -> std::io::Result<()> {
        let log = self.folder.log()?;
        let times = |what: &str| match log.iter().filter(|line| *line == what).count() {
            0 => "not at all".to_owned(),
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        out!("By a log beside the store, the handler ran {}, and its step", times(HANDLER));
        out!(
            "{BOLD}deposit{BOLD:#} ran {}. {DIM}A step that was stored does not run again.{DIM:#}\n",
            times(DEPOSIT)
        );
        Ok(())
    }
}

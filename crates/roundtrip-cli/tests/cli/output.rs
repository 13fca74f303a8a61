//! Results on standard output: parts, other offers of a server, and writes that fail.

use std::io::{BufRead as _, BufReader, pipe};
use std::process::{Command, Stdio};

use roundtrip::server::Partial;
use roundtrip::wire::ImageContent;
use roundtrip::{Args, Form, Parts, Prompt, Question, Reply, Round, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::own::serve;
use crate::support::{Folder, ROUNDTRIP, Ran, Served, command, ran, roundtrip};

fn image() -> ImageContent {
    ImageContent::new(&[0; 3], "image/png")
}

/// Parts of every kind are printed once, as the whole would be.
#[test]
fn parts_that_are_no_text_are_printed_once() {
    let mixed = async |mut out: Parts| {
        out.text("al").await;
        out.text("pha").await;
        out.push(image()).await;
        out.text("beta").await;
        out
    };
    let images = async |mut out: Parts| {
        out.push(image()).await;
        out.push(image()).await;
        out
    };
    let server = Server::new("own", "1").tool(Tool::new("mixed", mixed)).tool(Tool::new("images", images));
    let url = serve(server);
    const IMAGE: &str = "[image of type image/png, 3 bytes]\n";
    let ran = roundtrip(&["call", &url, "mixed"]).exits(0);
    assert_eq!(ran.out, format!("alpha\n{IMAGE}beta\n"));
    let ran = roundtrip(&["call", &url, "images"]).exits(0);
    assert_eq!(ran.out, format!("{IMAGE}{IMAGE}"));
}

/// Runs the command with a standard output that takes nothing.
#[cfg(target_os = "linux")]
fn full(words: &[&str]) -> Ran {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    ran(command(words).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap())
}

/// A result that cannot be written is lost, and that is a failure.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let served = Served::start(&[]);
    let url = &*served.url;
    for words in [
        &["list", url][..],
        &["keys", "new"],
        &["call", url, "fail"],
        &["call", url, "story", "--yes"],
        &["listen", url],
        &["completions", "bash"],
        &["man"],
        &["demo"],
        &["serve", "--http", "127.0.0.1:0"],
    ] {
        let ran = full(words).exits(1);
        let why = "roundtrip: standard output cannot be written: No space left on device";
        assert!(ran.err.contains(why), "{words:?}: {ran:?}");
    }
    let error = full(&["call", url, "fail", "--json"]).exits(1).error();
    assert_eq!((&error["kind"], &error["exit"]), (&json!("failed"), &json!(1)));
}

/// The server is closed although the output is lost: its process has ended before the command.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_closes_the_server() {
    let folder = Folder::new("full");
    let closed = folder.path("closed");
    let script = format!("'{ROUNDTRIP}' serve --stdio; touch '{closed}'");
    full(&["list", "--", "sh", "-c", &script]).exits(1);
    assert!(std::path::Path::new(&closed).exists());
}

/// A reader that has gone wants no more.
#[test]
fn a_reader_that_has_gone_is_no_error() {
    let served = Served::start(&[]);
    for words in [
        &["list", &served.url][..],
        &["listen", &served.url],
        &["call", &served.url, "story", "--yes"],
        &["completions", "bash"],
        &["man"],
        &["serve", "--http", "127.0.0.1:0"],
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let process = command(words).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let ran = ran(process.wait_with_output().unwrap()).exits(0);
        assert_eq!(ran.err, "", "{words:?}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    language: String,
    #[expect(dead_code, reason = "only its name matters")]
    topic: Option<String>,
}

#[test]
fn arguments_of_prompts_are_completed() {
    let prompt = Prompt::new("review", async |Args(review): Args<Review>| review.language)
        .complete("language", async |partial: Partial| partial.starting(["rust", "ruby", "go"]))
        .complete("topic", async |partial: Partial| {
            vec![format!("{}\u{1b}[2J", partial.arguments.get("language").cloned().unwrap_or_default())]
        });
    let url = serve(Server::new("own", "1").prompt(prompt));
    assert_eq!(roundtrip(&["complete", &url, "review", "language", "ru"]).exits(0).out, "rust\nruby\n");
    assert_eq!(roundtrip(&["complete", &url, "review", "language"]).exits(0).out, "rust\nruby\ngo\n");
    let by_json = roundtrip(&["complete", &url, "review", "language", "g", "--json"]).exits(0).json();
    assert_eq!(by_json["values"], json!(["go"]));
    let topic = roundtrip(&["complete", &url, "review", "topic", "--context", "language=go"]).exits(0);
    assert_eq!(topic.out, "go\\u{1b}[2J\n");
    roundtrip(&["complete", &url, "nothing", "language"]).exits(6);
    roundtrip(&["complete", &url, "review"]).exits(2);
}

#[test]
fn changes_are_printed_as_they_come() {
    let server = Server::new("own", "1").tool(Tool::new("one", async || "one"));
    let catalog = server.catalog();
    let url = serve(server);
    for (options, begin, change) in [
        (&[][..], "listening for ", "the list of tools has changed\n"),
        (&["--json"], r#"{"listening":"#, "{\"changed\":\"tools\"}\n"),
    ] {
        let mut listening = Command::new(ROUNDTRIP);
        listening.args(["listen", &url]).args(options).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut listening = listening.spawn().unwrap();
        let mut lines = BufReader::new(listening.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            line
        };
        let first = line();
        assert!(first.starts_with(begin), "{first}");
        catalog.add(Tool::new(format!("tool-{}", options.len()), async || "another")).unwrap();
        assert_eq!(line(), change);
        listening.kill().unwrap();
        listening.wait().unwrap();
    }
}

#[derive(Form)]
struct Name {
    name: String,
}

/// A list has an answer for each time that a question is asked.
#[test]
fn a_question_that_is_asked_again_takes_the_next_answer() {
    let names = async |round: Round| -> Result<Reply, ToolError> {
        let mut names: Vec<String> = round.state()?.unwrap_or_default();
        names.extend(round.answer::<Name>("name")?.map(|Name { name }| name));
        if names.len() == 2 {
            return Ok(Reply::text(names.join(" and ")));
        }
        round.set_state(&names)?;
        Ok(round.ask([Question::form::<Name>("name", "Who is there?")]))
    };
    let url = serve(Server::new("own", "1").tool(Tool::new("names", names)));
    let folder = Folder::new("again");
    let call = |answers: &str| {
        let answers = folder.file("answers.json", answers);
        roundtrip(&["call", &url, "names", "--answers", &answers])
    };
    let both = call(r#"{ "name": [{ "name": "Ada" }, { "name": "Bob" }] }"#).exits(0);
    assert_eq!(both.out, "Ada and Bob\n");
    let one = call(r#"{ "name": [{ "name": "Ada" }] }"#).exits(10);
    assert!(one.err.contains("has no answer to it"), "{one:?}");
    let three = call(r#"{ "name": [{ "name": "Ada" }, { "name": "Bob" }, "decline"] }"#).exits(2);
    assert!(three.err.contains("has not asked `name`"), "{three:?}");
}

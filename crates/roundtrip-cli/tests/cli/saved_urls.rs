//! Saved flows that name a URL: a file that `--save` of this user did not write sends nothing without consent.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::{Args, Form, Question, Reply, Round, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::own::serve;
use crate::support::{Folder, Ran, command, ran};

/// A user with a data folder, a saved call of a tool that counts its rounds, and the server of that tool.
struct World {
    folder: Folder,
    url: String,
    rounds: Arc<AtomicUsize>,
}

#[derive(Deserialize, JsonSchema)]
struct Disk {
    #[expect(dead_code, reason = "only that it is sent matters")]
    disk: Option<String>,
}

#[derive(Form)]
struct Sure {
    #[expect(dead_code, reason = "only that it was answered matters")]
    sure: bool,
}

impl World {
    /// Starts the server, and saves a call.
    fn new(test: &str) -> Self {
        let rounds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rounds);
        let erase = move |Args(_): Args<Disk>, round: Round| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let sure = round.answer::<Sure>("sure")?;
                let asked = || round.ask([Question::form::<Sure>("sure", "Are you sure?")]);
                Ok::<_, ToolError>(sure.map_or_else(asked, |_| Reply::text("erased")))
            }
        };
        let url = serve(Server::new("own", "1.0.0").tool(Tool::new("erase", erase)));
        let world = Self { folder: Folder::new(&format!("urls-{test}")), url, rounds };
        let arguments = r#"{"disk":"sda\u001b[2J"}"#;
        let save = ["call", &world.url, "erase", "--args", arguments, "--save", &world.flow()];
        world.runs(&save).exits(10);
        assert_eq!(world.rounds(), 1);
        world
    }

    fn flow(&self) -> String {
        self.folder.path("flow.json")
    }

    fn key(&self) -> PathBuf {
        self.folder.as_ref().join("data/roundtrip/flows.key")
    }

    /// Returns how many requests have reached the tool since the last time this was asked.
    fn rounds(&self) -> usize {
        self.rounds.swap(0, Ordering::SeqCst)
    }

    /// Writes the flow with another value at a place of it.
    fn change(&self, place: &str, value: Value) {
        let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(self.flow()).unwrap()).unwrap();
        *saved.pointer_mut(place).unwrap() = value;
        self.folder.file("flow.json", &saved.to_string());
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        command.env("XDG_DATA_HOME", self.folder.as_ref().join("data")).env("NO_COLOR", "1");
        command
    }

    fn runs(&self, words: &[&str]) -> Ran {
        ran(self.command(words).output().unwrap())
    }
}

#[test]
fn a_file_of_this_user_is_resumed_at_once() {
    let world = World::new("own");
    assert_eq!(world.runs(&["resume", &world.flow(), "--yes"]).exits(0).out, "erased\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(world.key()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Each part that is sent, and the server it is sent to, is covered by the mark of the file.
#[test]
fn a_file_that_was_changed_sends_nothing_without_its_url() {
    let world = World::new("changed");
    let answer = json!({ "action": "accept", "content": { "sure": true } });
    for (place, value) in [
        ("/pending/flow/params/arguments", json!({ "disk": "sdb" })),
        ("/pending/answers", json!({ "sure": answer })),
        ("/pending/state", json!("AAAA")),
        ("/server/url", json!(format!("{}?x", world.url))),
        ("/mark", json!("AAAA")),
        ("/mark", Value::Null),
    ] {
        let good = std::fs::read_to_string(world.flow()).unwrap();
        world.change(place, value);
        let refused = world.runs(&["resume", &world.flow(), "--yes"]).exits(2);
        assert!(refused.err.contains(&format!("roundtrip resume {} ", world.flow())), "{place}: {refused:?}");
        assert!(refused.err.contains(&world.url), "{place}: {refused:?}");
        assert_eq!(world.rounds(), 0, "{place}: nothing was sent");
        std::fs::write(world.flow(), good).unwrap();
    }
    world.runs(&["resume", &world.flow(), "--yes"]).exits(0);
}

/// The URL that is given is the one that is asked, and it is said if the file has another.
#[test]
fn a_script_gives_the_url_again() {
    let world = World::new("given");
    world.change("/pending/answers", json!({ "sure": { "action": "accept", "content": { "sure": true } } }));
    let done = world.runs(&["resume", &world.flow(), &world.url]).exits(0);
    assert_eq!((done.out.as_str(), done.err.as_str(), world.rounds()), ("erased\n", "", 1));
    world.change("/server/url", json!("http://127.0.0.1:1/mcp"));
    let other = world.runs(&["resume", &world.flow(), &world.url]).exits(0);
    assert!(other.err.contains("kept from another server"), "{other:?}");
    world.runs(&["resume", &world.flow(), "erase"]).exits(2);
    world.runs(&["resume", &world.flow(), &world.url, "--", "sh", "-c", "exit 1"]).exits(2);
}

/// Another user has another key. A key that others can read marks nothing, and the next save makes a new one.
#[test]
fn a_key_of_others_marks_nothing() {
    let world = World::new("keys");
    let (flow, key) = (world.flow(), world.key());
    let mut other = world.command(&["resume", &flow, "--yes"]);
    other.env("XDG_DATA_HOME", world.folder.as_ref().join("other"));
    ran(other.output().unwrap()).exits(2);
    let good = std::fs::read(&key).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        world.runs(&["resume", &flow, "--yes"]).exits(2);
        assert_eq!(world.rounds(), 0);
        world.runs(&["call", &world.url, "erase", "--save", &flow]).exits(10);
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(std::fs::read(&key).unwrap(), good);
        world.runs(&["resume", &flow, "--yes"]).exits(0);
    }
}

/// A call is kept although there is nowhere to keep a key, and says how it is resumed then.
#[test]
fn a_user_without_a_data_folder_saves_too() {
    let world = World::new("no-data");
    let nowhere = world.folder.file("file", "");
    let run = |words: &[&str]| ran(world.command(words).env("XDG_DATA_HOME", &nowhere).output().unwrap());
    let saved = run(&["call", &world.url, "erase", "--save", &world.flow()]).exits(10);
    assert!(saved.err.contains(&format!("roundtrip resume {} {}", world.flow(), world.url)), "{saved:?}");
    run(&["resume", &world.flow(), "--yes"]).exits(2);
    run(&["resume", &world.flow(), &world.url, "--yes"]).exits(0);
}

#[cfg(unix)]
mod terminal {
    use super::*;
    use crate::support::terminal::Terminal;
    use crate::support::{Served, roundtrip};

    /// E5: the server, the tool, its arguments and the answers that the file gives are shown, and sent after consent.
    #[test]
    fn a_file_of_somebody_else_is_consented_to() {
        let world = World::new("consent");
        let answer = json!({ "action": "accept", "content": { "sure": true } });
        world.change("/pending/answers", json!({ "sure": answer }));
        for (keys, code) in [("Decline\r", 4), ("\u{1b}", 4), ("\u{3}", 130), ("Send\r", 0)] {
            let mut terminal = Terminal::running(200, world.command(&["resume", &world.flow()]));
            terminal.shows(&world.url);
            terminal.shows("tools/call");
            terminal.shows("erase");
            terminal.shows(r#"{"disk":"sda\u001b[2J"}"#);
            terminal.shows(r#""sure""#);
            terminal.shows(r#"{"sure":true}"#);
            terminal.answers("Send it?", keys);
            let (status, text) = terminal.ends();
            assert_eq!(status.code(), Some(code), "{keys}: {text}");
            assert_eq!(world.rounds(), usize::from(code == 0), "{keys}: {text}");
        }
    }

    /// E5: answers may go to a task, which is another request than the call of the file. A state, a key and questions of the file are
    /// shown too, and the server is not said to ask these.
    #[test]
    fn the_task_of_a_saved_flow_is_shown() {
        let (served, folder) = (Served::start(&[]), Folder::new("urls-task"));
        let flow = folder.path("flow.json");
        roundtrip(&["call", &served.url, "report", "--save", &flow]).exits(10);
        let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(&flow).unwrap()).unwrap();
        let pending = &mut saved["pending"];
        assert!(pending["task"]["seen"]["taskId"].is_string(), "{pending}");
        pending["task"]["seen"]["taskId"] = "another-task".into();
        pending["flow"]["params"] = json!({ "name": "weather", "arguments": {} });
        pending["flow"]["idempotencyKey"] = "key-1".into();
        pending["state"] = "AAAA".into();
        folder.file("flow.json", &saved.to_string());
        let mut terminal = Terminal::of_width(800, &["resume", &flow]);
        terminal.shows(&served.url);
        terminal.shows(r#"tasks/update "another-task""#);
        terminal.shows(r#"tools/call {"name":"weather","arguments":{}}"#);
        terminal.shows(r#"with the idempotency key "key-1""#);
        terminal.shows("with a state of 4 characters");
        terminal.shows(r#"with your answer to "publish", which the file asks"#);
        terminal.shows("Publish 42 rows?");
        terminal.shows(&format!("it would be sent to: {}", served.url));
        terminal.answers("Send it?", "Send\r");
        terminal.shows(&format!("The file {flow} asks, in the name of the server"));
        terminal.answers("confirm", "\u{3}");
        let (status, text) = terminal.ends();
        assert_eq!(status.code(), Some(130), "{text}");
        assert!(!text.contains("The server "), "{text}");
    }

    /// A server that the command line names again is known, but what is sent to it is not.
    #[test]
    fn what_a_file_sends_is_consented_to_wherever_it_goes() {
        let world = World::new("given-consent");
        world.change("/pending/flow/params/arguments", json!({ "disk": "sdb" }));
        let mut terminal = Terminal::running(200, world.command(&["resume", &world.flow(), &world.url]));
        terminal.shows("sdb");
        terminal.answers("Send it?", "Decline\r");
        assert_eq!(terminal.ends().0.code(), Some(4));
        assert_eq!(world.rounds(), 0);
    }
}

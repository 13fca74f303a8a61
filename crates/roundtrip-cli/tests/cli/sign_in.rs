//! Sign-ins of the built command, at a server that checks tokens.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::support::world::World;
use crate::support::{Folder, Ran, ran};

/// A user with a home of their own, and without a keyring.
struct User {
    home: Folder,
    world: World,
    /// True if the keyring of the session is used.
    has_keyring: bool,
}

impl User {
    fn new(test: &str) -> Self {
        Self { home: Folder::new(&format!("sign-in-{test}")), world: World::start(), has_keyring: false }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = crate::support::command(words);
        let home = self.home.as_ref();
        command.env("HOME", home).env("XDG_DATA_HOME", home.join("data")).env("NO_COLOR", "1");
        if !self.has_keyring {
            command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", home.join("no-bus").display()));
        }
        command
    }

    fn runs(&self, words: &[&str]) -> Ran {
        ran(self.command(words).output().unwrap())
    }

    fn calls(&self, tool: &str) -> Ran {
        self.runs(&["call", &self.world.url, tool, "--args", "{}"])
    }

    /// Signs in by `--paste`, through pipes.
    fn pastes(&self, options: &[&str]) -> Ran {
        let (process, mut said, mut err) = self.pasted(options);
        said.read_to_string(&mut err).unwrap();
        Ran { err, ..ran(process.wait_with_output().unwrap()) }
    }

    /// Signs in by `--paste`, up to the address that is pasted. Returns the process, the rest of what it says, and what it has said.
    fn pasted(&self, options: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
        let mut words = vec!["login", self.world.url.as_str(), "--paste"];
        words.extend(options);
        let mut command = self.command(&words);
        command.env("CLIENT_SECRET", "secret of the client");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut err = String::new();
        while page(&err).is_none() {
            assert_ne!(said.read_line(&mut err).unwrap(), 0, "no page in {err}");
        }
        let callback = self.world.visits(page(&err).unwrap());
        writeln!(process.stdin.take().unwrap(), "{callback}").unwrap();
        (process, said, err)
    }
}

/// Finds the page of a sign-in in what the command has said.
fn page(said: &str) -> Option<&str> {
    said.split_whitespace().find(|word| word.contains("/authorize?"))
}

/// A sign-in of one process is used by others, until a sign-out.
#[test]
fn a_sign_in_serves_later_commands() {
    let user = User::new("later");
    let url = user.world.url.as_str();
    let login = user.pastes(&["--file"]).exits(0);
    assert!(login.err.contains(&format!("signed in to {url}, by http://127.0.0.1")), "{login:#?}");
    assert_eq!(user.calls("hello").exits(0).out, "Hello, alice!\n");
    assert!(user.runs(&["list", url]).exits(0).out.contains("hello()"));

    let shown = user.runs(&["whoami", url]).exits(0).out;
    for part in ["subject  alice", "scopes   read", "client   client-1"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // An hour, less the time since.
    let left = [59, 60].map(|left| format!("in {left} minutes; a call renews it"));
    assert!(left.iter().any(|left| shown.contains(left)), "{shown}");
    let who = user.runs(&["whoami", url, "--json"]).exits(0).json();
    assert_eq!((&who["subject"], &who["scopes"]), (&json!("alice"), &json!(["read"])));
    assert_eq!((&who["keptIn"], &who["isRenewable"]), (&json!("file"), &json!(true)));
    assert!(!format!("{shown}{who}").contains("eyJ"), "no part of a token is shown");

    assert!(user.runs(&["logout", url]).exits(0).err.contains("signed out"));
    user.calls("hello").exits(5);
    assert!(user.runs(&["whoami", url]).exits(5).err.contains(&format!("roundtrip login {url}")));
    assert!(user.runs(&["logout", url]).exits(0).err.contains("not signed in"));
}

#[test]
fn a_call_without_tokens_names_the_command() {
    let user = User::new("none");
    let called = user.calls("hello").exits(5);
    let login = format!("roundtrip login {}", user.world.url);
    assert!(called.err.contains(&format!("sign in with `{login}`")), "{called:#?}");
    let error = user.runs(&["call", &user.world.url, "hello", "--args", "{}", "--json"]).exits(5).error();
    assert_eq!((&error["kind"], &error["login"]), (&json!("signIn"), &json!(login)));
    let config = json!({ "mcpServers": { "shop": { "url": user.world.url } } });
    let config = user.home.file("mcp.json", &config.to_string());
    let listed = user.runs(&["list", "--config", &config, "shop"]).exits(5);
    assert!(listed.err.contains(&format!("roundtrip login --config {config} shop")), "{listed:#?}");
}

/// Tokens are renewed before they end, and when the server finds that they have.
#[test]
fn tokens_are_renewed() {
    let user = User::new("renewed");
    user.world.shared().lifetime = 20;
    user.pastes(&["--file"]).exits(0);
    user.calls("hello").exits(0);
    assert_eq!(user.world.shared().granted, ["authorization_code", "refresh_token"]);

    user.world.shared().gives_old = true;
    user.world.shared().lifetime = 3600;
    user.pastes(&["--file"]).exits(0);
    user.world.shared().gives_old = false;
    user.calls("hello").exits(0);
    assert_eq!(user.world.shared().granted[2..], ["authorization_code", "refresh_token"]);
    user.calls("hello").exits(0);
    assert_eq!(user.world.shared().granted.len(), 4, "the renewed token was stored");
}

/// O82: a command that is cut short waits for the answer to a refresh token, which is good for one use.
#[cfg(unix)]
#[test]
fn a_command_that_is_cut_short_loses_no_tokens() {
    use rustix::process::Signal;
    let cut_short = [
        ("timeout", Some("--timeout"), None, 7),
        ("deadline", Some("--deadline"), None, 7),
        ("ctrl-c", None, Some(Signal::INT), 130),
        ("sigterm", None, Some(Signal::TERM), 130),
        ("hang-ups", None, Some(Signal::HUP), 130),
    ];
    let cut = |(name, option, signal, exit): (&str, Option<&str>, Option<Signal>, i32)| {
        let user = User::new(&format!("cut-{name}"));
        user.world.shared().gives_old = true;
        user.pastes(&["--file"]).exits(0);
        user.world.shared().gives_old = false;
        let (come, has_come) = std::sync::mpsc::channel();
        user.world.shared().slow_renewal = Some((Duration::from_millis(1500), come));
        let mut words = vec!["call", &user.world.url, "hello", "--args", "{}"];
        words.extend(option.iter().flat_map(|option| [*option, "0.5"]));
        let mut command = user.command(&words);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        has_come.recv_timeout(Duration::from_secs(30)).unwrap();
        if let Some(signal) = signal {
            signalled(&mut process, signal);
        }
        ran(process.wait_with_output().unwrap()).exits(exit);
        user.world.shared().slow_renewal = None;
        user.calls("hello").exits(0);
        assert_eq!(user.world.shared().granted, ["authorization_code", "refresh_token"], "{name}");
    };
    std::thread::scope(|scope| {
        cut_short.map(|way| scope.spawn(move || cut(way))).map(|way| way.join().unwrap())
    });
}

/// Sends a signal to a process. A window that is closed may send several hang-ups: they are sent until the process has ended.
#[cfg(unix)]
fn signalled(process: &mut Child, signal: rustix::process::Signal) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_child(process), signal).unwrap();
    while signal == Signal::HUP && process.try_wait().unwrap().is_none() {
        kill_process(Pid::from_child(process), signal).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// O82: a sign-in that is cut short while its code is exchanged keeps the tokens: a code is good for one use.
#[cfg(unix)]
#[test]
fn a_sign_in_that_is_cut_short_loses_no_tokens() {
    use rustix::process::Signal;
    let cut = |signal: Signal| {
        let user = User::new(&format!("cut-login-{}", signal.as_raw()));
        let (come, has_come) = std::sync::mpsc::channel();
        user.world.shared().slow_renewal = Some((Duration::from_millis(1500), come));
        let (mut process, mut said, mut err) = user.pasted(&["--file"]);
        has_come.recv_timeout(Duration::from_secs(30)).unwrap();
        signalled(&mut process, signal);
        said.read_to_string(&mut err).unwrap();
        Ran { err, ..ran(process.wait_with_output().unwrap()) }.exits(130);
        user.world.shared().slow_renewal = None;
        user.calls("hello").exits(0);
        assert_eq!(user.world.shared().granted, ["authorization_code"], "{signal:?}");
    };
    std::thread::scope(|scope| {
        let signals = [Signal::INT, Signal::TERM, Signal::HUP];
        signals.map(|signal| scope.spawn(move || cut(signal))).map(|cut| cut.join().unwrap())
    });
}

/// O86: a note on a sign-in says where tokens are. One that others could have put there is not read, nor is one in their folder.
#[cfg(unix)]
#[test]
fn a_note_of_somebody_else_is_not_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new("notes");
    user.pastes(&["--file"]).exits(0);
    let folder = user.home.as_ref().join("data/roundtrip/tokens");
    let mut notes = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let note = notes.find(|path| path.extension().is_some_and(|ending| ending == "sign-in")).unwrap();
    let refused = |why: &str| {
        for words in
            [vec!["whoami", &user.world.url], vec!["logout", &user.world.url], vec!["list", &user.world.url]]
        {
            let ran = user.runs(&words).exits(2);
            assert!(ran.err.contains(why), "{words:?}: {ran:?}");
        }
    };
    let elsewhere = user.home.as_ref().join("note");
    std::fs::rename(&note, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &note).unwrap();
    refused("it is a link");
    std::fs::remove_file(&note).unwrap();
    assert!(Command::new("mkfifo").arg(&note).status().unwrap().success());
    refused("it is not a regular file");
    std::fs::remove_file(&note).unwrap();
    std::fs::write(&note, "not a note").unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    refused("other users can write to the directory");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::rename(&elsewhere, &note).unwrap();
    user.calls("hello").exits(0);
}

/// A grant that is over needs a sign-in, and a sign-in that fails leaves the stored one.
#[test]
fn a_grant_that_is_over_needs_a_sign_in() {
    let user = User::new("over");
    user.world.shared().gives_old = true;
    user.pastes(&["--file"]).exits(0);
    user.world.shared().refuses = Some(("invalid_grant", "it is over"));
    let called = user.calls("hello").exits(5);
    assert!(called.err.contains("roundtrip login"), "{called:#?}");
    user.pastes(&["--file"]).exits(5);
    user.runs(&["whoami", &user.world.url]).exits(0);
}

/// More scopes take a person: without a terminal the command says how to get them.
#[test]
fn more_scopes_are_asked_for_by_a_sign_in() {
    let user = User::new("scopes");
    user.pastes(&["--file"]).exits(0);
    let called = user.calls("write").exits(5);
    assert!(
        called.err.contains(&format!("roundtrip login {} --scope 'read write'", user.world.url)),
        "{called:#?}"
    );
    user.pastes(&["--file", "--scope", "read write"]).exits(0);
    assert_eq!(user.calls("write").exits(0).out, "written\n");
}

/// A header wins over stored tokens.
#[test]
fn a_header_wins() {
    let user = User::new("header");
    user.pastes(&["--file"]).exits(0);
    let wrong = ["call", &user.world.url, "hello", "--args", "{}", "-H", "Authorization: Bearer wrong"];
    let called = user.runs(&wrong).exits(5);
    assert!(called.err.contains("header") && !called.err.contains("roundtrip login"), "{called:#?}");
    user.runs(&["login", &user.world.url, "--paste", "-H", "authorization: Bearer x"]).exits(2);
}

/// A client that was registered by hand keeps its secret with its tokens.
#[test]
fn a_registered_client_is_used_with_its_secret() {
    let user = User::new("registered");
    user.world.shared().lifetime = 20;
    let registered = ["--file", "--client-id", "mine", "--client-secret-env", "CLIENT_SECRET"];
    let issuer = ["--issuer", user.world.base.as_str()];
    user.pastes(&[&registered[..], &issuer].concat()).exits(0);
    assert!(user.runs(&["whoami", &user.world.url]).exits(0).out.contains("client   mine"));
    user.calls("hello").exits(0);
    let secret = Some("secret of the client".to_owned());
    assert_eq!(user.world.shared().secrets, [secret.clone(), secret]);
    let unset =
        ["login", &user.world.url, "--paste", "--client-id", "a", "--client-secret-env", "NOT_SET_HERE"];
    assert!(user.runs(&unset).exits(2).err.contains("--issuer"), "the secret could go to any issuer");
    let unbound = ["login", &user.world.url, "--paste", "--client-id", "a"];
    assert!(user.runs(&unbound).exits(2).err.contains("--issuer"), "the code could go to any issuer");
    assert!(user.runs(&[&unset[..], &issuer].concat()).exits(2).err.contains("NOT_SET_HERE"));
}

#[test]
fn a_code_is_entered_elsewhere() {
    let user = User::new("device");
    let login = user.runs(&["login", &user.world.url, "--device", "--file"]).exits(0);
    assert!(login.err.contains("WDJB-MJHT") && login.err.contains("/enter"), "{login:#?}");
    user.calls("hello").exits(0);
}

/// Without a keyring tokens go to files, at once, and the command says so.
#[test]
#[cfg(target_os = "linux")]
fn without_a_keyring_tokens_are_in_a_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new("keyring");
    let login = user.pastes(&[]).exits(0);
    let folder = user.home.as_ref().join("data/roundtrip/tokens");
    assert!(login.err.contains(&format!("kept in {}", folder.display())), "{login:#?}");
    assert!(login.err.contains("no keyring"), "{login:#?}");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
    let modes = files.iter().map(|file| file.metadata().unwrap().permissions().mode() & 0o777);
    assert!(modes.clone().count() >= 2 && modes.clone().all(|mode| mode == 0o600), "{files:?}");
    user.calls("hello").exits(0);
}

#[test]
#[ignore = "it writes to a keyring: dbus-run-session -- cargo test -p roundtrip-cli keyring -- --ignored"]
fn with_a_keyring_tokens_are_in_it() {
    let user = User { has_keyring: true, ..User::new("in-keyring") };
    let url = user.world.url.as_str();
    user.world.shared().lifetime = 20;
    let login = user.pastes(&[]).exits(0);
    assert!(login.err.contains("kept in the keyring of the operating system"), "{login:#?}");
    user.calls("hello").exits(0);
    assert_eq!(user.world.shared().granted, ["authorization_code", "refresh_token"]);
    assert_eq!(user.runs(&["whoami", url, "--json"]).exits(0).json()["keptIn"], "keyring");
    let without = User { home: user.home, world: user.world, has_keyring: false };
    let unreachable = without.calls("hello").exits(5);
    assert!(
        unreachable.err.contains("keyring") && unreachable.err.contains("roundtrip login"),
        "{unreachable:#?}"
    );
    let user = User { has_keyring: true, ..without };
    user.runs(&["logout", &user.world.url]).exits(0);
    user.calls("hello").exits(5);
}

/// Nothing that an authorization server says reaches the terminal as it is.
#[test]
fn an_issuer_cannot_act_on_the_terminal() {
    let user = User::new("hostile");
    user.world.shared().subject = "ali\u{1b}[2Jce\u{202e}";
    user.world.shared().user_code = "A\u{1b}]0;x\u{7}";
    let mut runs = vec![user.runs(&["login", &user.world.url, "--device", "--file"])];
    runs.push(user.pastes(&["--file"]).exits(0));
    runs.push(user.runs(&["whoami", &user.world.url]).exits(0));
    runs.push(user.runs(&["whoami", &user.world.url, "--json"]).exits(0));
    runs.push(user.calls("hello").exits(0));
    user.world.shared().refuses = Some(("access_\u{1b}[31mdenied", "no\r\u{1b}[2K\u{9b}31m"));
    runs.push(user.pastes(&["--file"]).exits(5));
    for run in runs {
        let text = format!("{}{}", run.out, run.err);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r', '\u{9b}', '\u{202e}']), "{run:#?}");
    }
}

#[test]
fn a_server_that_is_a_command_is_not_signed_in_to() {
    let user = User::new("command");
    let config = user.home.file("mcp.json", r#"{ "mcpServers": { "shop": { "command": "true" } } }"#);
    for command in ["login", "logout", "whoami"] {
        assert!(
            user.runs(&[command, "--config", &config, "shop"]).exits(2).err.contains("HTTP"),
            "{command}"
        );
    }
}

#[test]
fn the_document_of_the_client_is_printed() {
    let user = User::new("metadata");
    let url = "https://agent.example/client.json";
    let document = user.runs(&["client-metadata", url]).exits(0).json();
    assert_eq!((&document["client_id"], &document["application_type"]), (&json!(url), &json!("native")));
    user.runs(&["client-metadata", "http://agent.example/"]).exits(2);
}

/// Sign-ins of a person at a terminal.
#[cfg(unix)]
mod terminal {
    use super::{User, page};
    use crate::support::terminal::Terminal;

    impl User {
        fn starts(&self, words: &[&str]) -> Terminal {
            Terminal::running(200, self.command(words))
        }
    }

    /// Waits for the page of a sign-in.
    fn shown(terminal: &mut Terminal, behind: &str) -> String {
        terminal.shows(behind);
        page(&terminal.text).unwrap_or_else(|| panic!("no page in {}", terminal.text)).to_owned()
    }

    /// An address that is not of this sign-in is asked for again.
    #[test]
    fn an_address_is_pasted() {
        let user = User::new("pasted");
        let mut terminal = user.starts(&["login", &user.world.url, "--paste", "--file"]);
        let page = shown(&mut terminal, "Address:");
        terminal.press("http://127.0.0.1/callback?code=1&state=2\r");
        terminal.shows("not the address of this sign-in");
        terminal.answers("Address:", &format!("{}\r", user.world.visits(&page)));
        terminal.shows("signed in to");
        let (status, text) = terminal.ends();
        assert!(status.success(), "{text}");
        user.calls("hello").exits(0);
    }

    #[test]
    fn ctrl_c_ends_a_sign_in() {
        let user = User::new("interrupted");
        let mut terminal = user.starts(&["login", &user.world.url, "--paste", "--file"]);
        terminal.answers("Address:", "\u{3}");
        assert_eq!(terminal.ends().0.code(), Some(130));
        user.runs(&["whoami", &user.world.url]).exits(5);
    }

    /// A browser that hands the page it is to open to the test. Other systems have no variable for it.
    #[cfg(target_os = "linux")]
    mod browser {
        use std::os::unix::fs::PermissionsExt as _;
        use std::process::Command;
        use std::sync::mpsc::{self, Receiver};

        use super::*;
        use crate::support::terminal::PATIENCE;

        /// Starts the command in a terminal, with a browser. Returns the page that the browser opens, too.
        fn with_browser(user: &User, name: &str, words: &[&str]) -> (Terminal, Receiver<String>) {
            let pipe = user.home.path(&format!("{name}.pipe"));
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let script = user.home.file(name, &format!("#!/bin/sh\nprintf %s \"$1\" > '{pipe}'\n"));
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
            let (send, opened) = mpsc::channel();
            std::thread::spawn(move || send.send(std::fs::read_to_string(pipe).unwrap()));
            let mut command = user.command(words);
            command.env("BROWSER", script);
            (Terminal::running(200, command), opened)
        }

        /// The page is opened, and the browser comes back to the command.
        #[test]
        fn a_browser_comes_back() {
            let user = User::new("browser");
            let (mut terminal, opened) = with_browser(&user, "login", &["login", &user.world.url, "--file"]);
            let page = opened.recv_timeout(PATIENCE).unwrap();
            assert_eq!(shown(&mut terminal, "host: 127.0.0.1"), page);
            user.world.comes_back(&user.world.visits(&page));
            terminal.shows("signed in to");
            assert!(terminal.ends().0.success());
            user.calls("hello").exits(0);
        }

        /// A call that needs more scopes goes on after a sign-in that the user consents to, and ends if they do not.
        #[test]
        fn a_call_goes_on_after_consent() {
            let user = User::new("consent");
            user.pastes(&["--file"]).exits(0);
            let words = ["call", &user.world.url, "write", "--args", "{}"];
            let (mut terminal, _) = with_browser(&user, "declined", &words);
            terminal.shows("wants a sign-in, for read write");
            terminal.answers("Sign in?", "Decline\r");
            terminal.shows("the sign-in was declined");
            assert_eq!(terminal.ends().0.code(), Some(4));
            let (mut terminal, opened) = with_browser(&user, "consented", &words);
            terminal.answers("Sign in?", "\r");
            user.world.comes_back(&user.world.visits(&opened.recv_timeout(PATIENCE).unwrap()));
            terminal.shows("written");
            assert!(terminal.ends().0.success());
            user.calls("write").exits(0);
        }
    }
}

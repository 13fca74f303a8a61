//! Completions in real shells, and man pages.

use std::process::Command;

use crate::support::{Folder, roundtrip};

/// A shell, and a script that loads the file `$FILE` and prints completions of `roundtrip c`, or the function that has them.
const SHELLS: [(&str, &[&str], &str); 3] = [
    (
        "bash",
        &["--noprofile", "--norc", "-c"],
        r#"source "$FILE" && complete -p roundtrip && COMP_WORDS=(roundtrip c) COMP_CWORD=1 &&
           _roundtrip roundtrip c roundtrip && printf '%s\n' "${COMPREPLY[@]}""#,
    ),
    (
        "zsh",
        &["-f", "-c"],
        r#"autoload -U compinit && compinit -D -u && source "$FILE" && print -r -- "$_comps[roundtrip]" &&
           functions _roundtrip_commands"#,
    ),
    ("fish", &["--no-config", "-c"], r#"source "$FILE"; and complete -C "roundtrip c""#),
];

#[test]
fn completions_load_in_shells() {
    let folder = Folder::new("shells");
    for (shell, options, script) in SHELLS {
        let file = folder.file(shell, &roundtrip(&["completions", shell]).exits(0).out);
        let loaded = Command::new(shell).args(options).arg(script).env("FILE", file).output();
        let Ok(loaded) = loaded else {
            assert!(std::env::var_os("ROUNDTRIP_TEST_STRICT").is_none(), "{shell} is not installed");
            println!("SKIPPED  completions in {shell}: it is not installed");
            continue;
        };
        let (out, err) = (String::from_utf8_lossy(&loaded.stdout), String::from_utf8_lossy(&loaded.stderr));
        assert!(loaded.status.success() && err.is_empty(), "{shell}: {out}{err}");
        for name in ["call", "complete", "completions"] {
            assert!(out.contains(name), "{shell} does not complete {name}: {out}");
        }
    }
}

#[test]
fn completions_have_every_option() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = roundtrip(&["completions", shell]).exits(0).out;
        assert!(script.contains("decline-all") && script.contains("rotate"), "{shell}");
    }
    roundtrip(&["completions", "cmd"]).exits(2);
}

#[test]
fn every_command_has_a_page() {
    let folder = Folder::new("man");
    assert!(roundtrip(&["man"]).exits(0).out.contains(".TH roundtrip"));
    roundtrip(&["man", "--folder", folder.as_ref().to_str().unwrap()]).exits(0);
    assert!(std::fs::read_to_string(folder.path("roundtrip-call.1")).unwrap().contains("decline"));
}

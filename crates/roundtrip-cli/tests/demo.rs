//! The demo shows what it promises.

use std::process::Command;

/// Without a terminal the answers are scripted; each round goes to another instance, and the step runs once.
#[test]
fn the_demo_passes_a_call_from_instance_to_instance() {
    let said = Command::new(env!("CARGO_BIN_EXE_roundtrip")).arg("demo").output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    let mut rest = text.as_str();
    for part in [
        "calls book_table at Ann, for the first time",
        "Ann      asks party, and forgets: the sealed state has ",
        "at Ben, again, answering party",
        "Ben asks the restaurant for its deposit, once",
        "Ben      asks when",
        "at Cem, again, answering when",
        "Cem      is done",
        "Nopa for 2 on 2026-12-24, deposit 40",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} should come next in {rest}"));
        rest = &rest[at..];
    }
    assert_eq!(text.matches("asks the restaurant").count(), 1, "the step is remembered: {text}");
}

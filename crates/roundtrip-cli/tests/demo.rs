//! The demo shows what it promises.

use std::process::Command;

#[test]
fn the_demo_shows_both_sides_and_ends_well() {
    let said = Command::new(env!("CARGO_BIN_EXE_roundtrip")).arg("demo").output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{text}");
    for part in [
        "\"method\":\"tools/list\"",
        "\"method\":\"notifications/progress\"",
        "table 7 for 2 at Nopa",
        "/people: 13",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

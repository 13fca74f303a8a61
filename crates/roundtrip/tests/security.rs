//! SECURITY.md names a test for every threat. The names are checked here.

use std::fs;
use std::path::Path;

/// Returns the tests a text names, each as a path below `crates/` and a function: `` `path.rs::name` ``.
fn named(text: &str) -> Vec<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once("::")).filter(|(file, _)| file.ends_with(".rs")).collect()
}

/// Returns whether a source has a test of this name: the function, below an attribute that makes it one, or in a list of
/// functions that a macro makes tests of, a line each.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let head = format!("fn {name}(");
    let Some(at) = lines.iter().position(|line| line.contains(&head)) else { return false };
    let attributes = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with("#["));
    attributes.into_iter().any(|line| line.contains("test")) || lines.iter().any(|line| line.trim() == name)
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn every_test_that_security_md_names_is_there() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("SECURITY.md");
    let named = named(&text);
    assert!(named.len() > 50, "{} tests are named: has the form of the table changed?", named.len());
    let missing: Vec<String> = named
        .into_iter()
        .filter(|(file, name)| {
            let source = fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
            !has_test(&source, name)
        })
        .map(|(file, name)| format!("{file}::{name}"))
        .collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn every_threat_has_a_test() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("SECURITY.md");
    let (_, threats) = text.split_once("| threat |").expect("the table of threats");
    // Two lines are the table's head, and those in bold say who is the threat.
    let rows = threats.lines().skip(2).filter(|line| line.starts_with('|') && !line.starts_with("| **"));
    let untested: Vec<&str> = rows.filter(|row| named(row).is_empty()).collect();
    assert!(untested.is_empty(), "threats without a test:\n{}", untested.join("\n"));
}

#[test]
fn a_name_without_a_test_is_noticed() {
    let source = "#[tokio::test]\nasync fn shown() {}\n\nfn helper() {}\n";
    assert!(has_test(source, "shown") && !has_test(source, "helper") && !has_test(source, "gone"));
    let source = "on_each_store! {\n    listed\n}\nasync fn listed(site: &Site) {}\nasync fn helper() {}\n";
    assert!(has_test(source, "listed") && !has_test(source, "helper"));
    assert_eq!(named("see `a/b.rs::shown` and `Http::principal`"), [("a/b.rs", "shown")]);
}

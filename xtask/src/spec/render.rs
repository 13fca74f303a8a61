//! Writing the rules down as Markdown, in an order that depends on nothing but the rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::scan::{Id, Rule};

/// The areas, in the order in which they are shown.
const AREAS: &[(char, &str)] = &[
    ('W', "Messages"),
    ('M', "Rounds, server side"),
    ('C', "Rounds, client side"),
    ('S', "The seal"),
    ('A', "Asking inline"),
    ('E', "Elicitation"),
    ('H', "Streamable HTTP"),
    ('I', "stdio"),
    ('L', "Eras"),
    ('T', "Tasks"),
    ('K', "Stores"),
    ('G', "Results in parts"),
    ('N', "Notifications and lists"),
    ('O', "Authorization"),
    ('Z', "Robustness"),
];

const HEAD: &str = "\
# The rules and their tests

Written by `cargo xtask spec` from the doc comments of the tests; edit those. A test names the rule that it
shows: `/// W1: ...`.
";

pub(crate) fn markdown(rules: &[Rule]) -> Result<String> {
    // An id's sentence is the first one found for it; its tests are all that name it.
    let mut by_id: BTreeMap<Id, (&str, Vec<&str>)> = BTreeMap::new();
    for rule in rules {
        if !AREAS.iter().any(|(area, _)| *area == rule.id.area) {
            bail!(
                "{} names rule {}{}, and there is no area {}",
                rule.test,
                rule.id.area,
                rule.id.number,
                rule.id.area
            );
        }
        let (_, tests) = by_id.entry(rule.id).or_insert_with(|| (&rule.sentence, Vec::new()));
        tests.push(&rule.test);
    }

    let mut text = HEAD.to_owned();
    for (area, title) in AREAS {
        let mut of_area = by_id.iter().filter(|(id, _)| id.area == *area).peekable();
        if of_area.peek().is_none() {
            continue;
        }
        write!(text, "\n## {area}. {title}\n\n| id | rule | tests |\n|---|---|---|\n")?;
        for (id, (sentence, tests)) in of_area {
            let mut tests = tests.clone();
            tests.sort_unstable();
            tests.dedup();
            let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
            writeln!(
                text,
                "| {area}{} | {} | {} |",
                id.number,
                sentence.replace('|', "\\|"),
                tests.join("<br>")
            )?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(area: char, number: u8, sentence: &str, test: &str) -> Rule {
        Rule { id: Id { area, number }, sentence: sentence.into(), test: test.into() }
    }

    #[test]
    fn orders_by_area_and_then_by_number() {
        let text = markdown(&[
            rule('A', 1, "Asks.", "b.rs::c"),
            rule('M', 10, "Ten.", "b.rs::b"),
            rule('M', 9, "Nine | 9.", "b.rs::a"),
            rule('W', 1, "Ids.", "a.rs::z"),
        ])
        .unwrap();
        let rows: Vec<&str> =
            text.lines().filter(|line| line.starts_with("| ") || line.starts_with("##")).collect();
        let wanted = [
            "## W. Messages",
            "| id | rule | tests |",
            "| W1 | Ids. | `a.rs::z` |",
            "## M. Rounds, server side",
            "| id | rule | tests |",
            "| M9 | Nine \\| 9. | `b.rs::a` |",
            "| M10 | Ten. | `b.rs::b` |",
            "## A. Asking inline",
            "| id | rule | tests |",
            "| A1 | Asks. | `b.rs::c` |",
        ];
        assert_eq!(rows, wanted);
    }

    #[test]
    fn gathers_the_tests_of_a_rule_under_its_first_sentence() {
        let text =
            markdown(&[rule('W', 1, "First.", "b.rs::b"), rule('W', 1, "Second.", "a.rs::a")]).unwrap();
        assert!(text.contains("| W1 | First. | `a.rs::a`<br>`b.rs::b` |"), "{text}");
        assert!(!text.contains("Second."));
    }

    #[test]
    fn an_unknown_area_is_an_error_that_names_the_test() {
        let error = markdown(&[rule('X', 1, "?", "a.rs::odd")]).unwrap_err().to_string();
        assert!(error.contains("a.rs::odd") && error.contains("X1"), "{error}");
    }
}

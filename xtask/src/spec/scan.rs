//! Finding rules in a source file: a doc comment line `<ID>: <what it says>` above a function.

/// A rule's id: the area's letter and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) area: char,
    pub(crate) number: u8,
}

/// A rule, as one test states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) id: Id,
    pub(crate) sentence: String,
    /// `path::function`
    pub(crate) test: String,
}

/// The rules of one file, in the order they stand in.
pub(crate) fn rules(source: &str, path: &str) -> Vec<Rule> {
    let mut found = Vec::new();
    let mut doc: Vec<&str> = Vec::new();
    let mut attribute_depth = 0;
    for line in source.lines().map(str::trim) {
        if attribute_depth > 0 || line.starts_with("#[") {
            attribute_depth += brackets(line);
        } else if let Some(text) = line.strip_prefix("///").filter(|text| !text.starts_with('/')) {
            doc.push(text.trim());
        } else if line.starts_with("//") {
            // A plain comment may stand between the doc comment and its function.
        } else {
            if let Some(function) = function_name(line) {
                for (ids, sentence) in statements(&doc) {
                    let test = format!("{path}::{function}");
                    let rule = |id| Rule { id, sentence: sentence.clone(), test: test.clone() };
                    found.extend(ids.into_iter().map(rule));
                }
            }
            doc.clear();
        }
    }
    found
}

/// How much deeper in brackets a line of an attribute leaves us. Brackets inside string literals are
/// counted too; they would have to be unbalanced to matter.
fn brackets(line: &str) -> i32 {
    line.chars().fold(0, |depth, letter| match letter {
        '[' => depth + 1,
        ']' => depth - 1,
        _ => depth,
    })
}

/// The name in `pub(crate) async fn name(..`.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let is_modifier = |word: &str| {
        word.starts_with("pub")
            || ["async", "const", "unsafe", "extern", "in"].contains(&word)
            || word.starts_with('"')
    };
    loop {
        match words.next()? {
            "fn" => break,
            word if is_modifier(word) => {}
            _ => return None,
        }
    }
    let name = words.next()?.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    (!name.is_empty()).then_some(name)
}

/// The statements of a doc comment. Each begins with its ids and goes on to a blank line or the next ids.
fn statements(doc: &[&str]) -> Vec<(Vec<Id>, String)> {
    let mut found: Vec<(Vec<Id>, String)> = Vec::new();
    let mut open = false;
    for line in doc {
        if let Some((ids, sentence)) = opening(line) {
            found.push((ids, sentence.to_owned()));
            open = true;
        } else if line.is_empty() {
            open = false;
        } else if let (true, Some((_, sentence))) = (open, found.last_mut()) {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(line);
        }
    }
    found
}

/// `W2, W3: sentence` as ids and sentence.
fn opening(line: &str) -> Option<(Vec<Id>, &str)> {
    let (ids, sentence) = line.split_once(':')?;
    let ids: Option<Vec<Id>> = ids.split(',').map(|id| parse_id(id.trim())).collect();
    Some((ids?, sentence.trim()))
}

fn parse_id(text: &str) -> Option<Id> {
    let mut letters = text.chars();
    let area = letters.next().filter(char::is_ascii_uppercase)?;
    let digits = letters.as_str();
    let fits = matches!(digits.len(), 1 | 2) && digits.bytes().all(|digit| digit.is_ascii_digit());
    fits.then(|| digits.parse().ok()).flatten().map(|number| Id { area, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    // The samples are put together line by line: a scanner that reads this file must not find them.
    fn scan(lines: &[&str]) -> Vec<(String, String, String)> {
        rules(&lines.join("\n"), "a.rs")
            .into_iter()
            .map(|rule| (format!("{}{}", rule.id.area, rule.id.number), rule.sentence, rule.test))
            .collect()
    }

    fn one(id: &str, sentence: &str, test: &str) -> (String, String, String) {
        (id.into(), sentence.into(), test.into())
    }

    #[test]
    fn finds_a_rule_above_each_kind_of_test() {
        let found = scan(&[
            "/// W1: An id is kept.",
            "#[test]",
            "fn keeps_ids() {",
            "}",
            "    /// H10: No body.",
            "    #[tokio::test(flavor = \"multi_thread\")]",
            "    async fn answers_202() {",
            "/// Z3: Plain function.",
            "pub(crate) fn helper<T>(t: T) {",
        ]);
        let wanted = [
            one("W1", "An id is kept.", "a.rs::keeps_ids"),
            one("H10", "No body.", "a.rs::answers_202"),
            one("Z3", "Plain function.", "a.rs::helper"),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn several_ids_share_a_sentence_and_a_test_may_show_several_rules() {
        let found = scan(&["/// W2, W3: Bad bytes.", "/// M9: Asked again.", "#[test]", "fn f() {}"]);
        let wanted = [
            one("W2", "Bad bytes.", "a.rs::f"),
            one("W3", "Bad bytes.", "a.rs::f"),
            one("M9", "Asked again.", "a.rs::f"),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_sentence_runs_on_to_the_blank_line() {
        let found = scan(&[
            "/// Before.",
            "/// C5: A pause",
            "/// that grows.",
            "///",
            "/// More: prose.",
            "fn f() {}",
        ]);
        assert_eq!(found, [one("C5", "A pause that grows.", "a.rs::f")]);
    }

    #[test]
    fn attributes_and_comments_may_stand_between() {
        let found = scan(&[
            "/// S1: On by default.",
            "#[test]",
            "#[cfg_attr(",
            "    miri,",
            "    ignore = \"slow [really]\",",
            ")]",
            "// why it is so",
            "fn sealed() {}",
        ]);
        assert_eq!(found, [one("S1", "On by default.", "a.rs::sealed")]);
    }

    #[test]
    fn other_items_and_other_prose_are_no_rules() {
        let found = scan(&[
            "/// W1: On a type.",
            "struct A;",
            "fn f() {}",
            "/// W1: Apart from it.",
            "",
            "fn g() {}",
            "//// W1: Not a doc comment.",
            "fn h() {}",
            "/// WW1: no. W123: no. Note: no. w1: no. W: no.",
            "/// W123: no.",
            "/// W1 without a colon",
            "fn i() {}",
        ]);
        assert_eq!(found, []);
    }
}

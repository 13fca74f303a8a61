//! JSON with comments and trailing commas, as editors write it, made plain.

/// Removes comments, and commas before a closing bracket. Text inside strings stays as it is.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('"', _) => string(&mut rest, &mut plain),
            ('/', Some('/')) => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                let mut last = ' ';
                while let Some(c) = rest.next().filter(|c| !(last == '*' && *c == '/')) {
                    last = c;
                }
            }
            (']' | '}', _) => {
                if plain.trim_end().ends_with(',') {
                    plain.truncate(plain.trim_end().len() - 1);
                }
                plain.push(c);
            }
            _ => plain.push(c),
        }
    }
    plain
}

/// Copies a string up to its end.
fn string(rest: &mut impl Iterator<Item = char>, plain: &mut String) {
    plain.push('"');
    while let Some(c) = rest.next() {
        plain.push(c);
        match c {
            '\\' => plain.extend(rest.next()),
            '"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::plain;

    #[test]
    fn comments_and_trailing_commas_are_left_out() {
        let text = r#"{ // the servers, "all" of them
            "url": "https://a/b", /* not "this": 1 */ "text": "a // b /* c */ \",}",
            "list": [1, 2, ],
        }"#;
        let value: Value = serde_json::from_str(&plain(text)).unwrap();
        assert_eq!(value, json!({ "url": "https://a/b", "text": "a // b /* c */ \",}", "list": [1, 2] }));
    }
}

//! The syntax of a message with placeholders.

/// Returns the error in a message, if there is one.
pub(crate) fn mistake(message: &str) -> Option<String> {
    let mut rest = message;
    while let Some(at) = rest.find(['{', '}']) {
        rest = &rest[at..];
        rest = if rest.starts_with("{{") || rest.starts_with("}}") {
            &rest[2..]
        } else if rest.starts_with('}') {
            return Some("a `}` that closes nothing; for the brace itself write `}}`".to_owned());
        } else {
            let Some((name, after)) = rest[1..].split_once('}').filter(|(name, _)| !name.contains('{'))
            else {
                return Some("a `{` that is never closed; for the brace itself write `{{`".to_owned());
            };
            if name.is_empty() || name.trim() != name {
                return Some(format!("`{{{name}}}` does not name an argument: write `{{name}}`"));
            }
            after
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::mistake;

    #[test]
    fn placeholders_are_names_in_braces() {
        for message in ["", "How many?", "For {restaurant}?", "{a}{b}", "{{}}", "{{{a}}}", "{a b}"] {
            assert_eq!(mistake(message), None, "{message}");
        }
        for message in ["{", "}", "{}", "{ a }", "{a", "a}", "{a{b}", "{{a}", "{a}}"] {
            assert!(mistake(message).is_some(), "{message}");
        }
    }
}

//! Message templates with arguments of the call.

use serde_json::Value;

use crate::wire::JsonObject;

/// Fills a message template: `{name}` becomes the top-level argument of that name, text as it is and anything else as
/// JSON.
///
/// `{{` and `}}` stand for the braces themselves. A name no argument has stays as it is written, braces and
/// all, and so does a brace without a partner. Arguments are not templates: braces in them stay.
///
/// ```
/// # use roundtrip_core::form::fill_message;
/// let arguments = serde_json::json!({ "restaurant": "Nopa", "people": 2 });
/// let message = fill_message("A table for {people} at {restaurant}?", arguments.as_object().unwrap());
/// assert_eq!(message, "A table for 2 at Nopa?");
/// ```
pub fn fill_message(template: &str, arguments: &JsonObject) -> String {
    let mut message = String::with_capacity(template.len());
    for piece in Pieces(template) {
        match piece {
            Piece::Text(text) => message.push_str(text),
            Piece::Placeholder { name, written } => match arguments.get(name) {
                Some(Value::String(text)) => message.push_str(text),
                Some(value) => message.push_str(&value.to_string()),
                None => message.push_str(written),
            },
        }
    }
    message
}

/// Iterates over the names in a message template, as [`fill_message`] reads it.
pub fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    Pieces(template).filter_map(|piece| match piece {
        Piece::Placeholder { name, .. } => Some(name),
        Piece::Text(_) => None,
    })
}

/// A piece of a message template.
enum Piece<'a> {
    Text(&'a str),
    Placeholder { name: &'a str, written: &'a str },
}

/// Iterator over the pieces of what is left of a template.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.0;
        let (piece, after) = match rest.find(['{', '}']) {
            None if rest.is_empty() => return None,
            None => (Piece::Text(rest), ""),
            Some(0) if rest.starts_with("{{") || rest.starts_with("}}") => {
                (Piece::Text(&rest[..1]), &rest[2..])
            }
            Some(0) => match placeholder(rest) {
                Some((name, after)) => {
                    let written = &rest[..rest.len() - after.len()];
                    (Piece::Placeholder { name, written }, after)
                }
                None => (Piece::Text(&rest[..1]), &rest[1..]),
            },
            Some(at) => (Piece::Text(&rest[..at]), &rest[at..]),
        };
        self.0 = after;
        Some(piece)
    }
}

/// Splits `{name}` at the start of a text into the name and the rest.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix('{')?.split_once('}')?;
    (!name.is_empty() && !name.contains('{')).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fill_message, placeholders};

    #[track_caller]
    fn filled(template: &str, expected: &str) {
        let arguments = json!({ "name": "Ada {age}", "age": 36, "tags": ["a"], "none": null });
        assert_eq!(fill_message(template, arguments.as_object().unwrap()), expected);
    }

    #[test]
    fn names_become_arguments() {
        filled("Is {name} {age}?", "Is Ada {age} 36?");
        filled("{tags}{none}", "[\"a\"]null");
        filled("grün {age}", "grün 36");
    }

    #[test]
    fn what_names_no_argument_stays() {
        filled("{nobody} {} { } } {", "{nobody} {} { } } {");
        filled("{a{age}", "{a36");
    }

    #[test]
    fn doubled_braces_are_braces() {
        filled("{{age}} {{{age}}}", "{age} {36}");
    }

    #[test]
    fn placeholders_are_the_names_that_are_filled_in() {
        let names: Vec<_> = placeholders("{a} {{b}} {{{c}}} {} {d{e} }").collect();
        assert_eq!(names, ["a", "c", "e"]);
    }
}

//! Quotations of what a peer sent.

use std::borrow::Cow;
use std::fmt;

/// Longest quotation in an error text, in characters.
const QUOTED: usize = 200;
/// Longest text of an error that quotes, in characters: it has reasons to give as well.
const TOLD: usize = 500;

/// Shortens what a peer sent to what an error text can quote of it.
///
/// A name, a URI or a key may be as long as a message. A reader of an error or a log needs its beginning, and a refusal should not be as large as what is refused.
pub fn clip(text: &str) -> Cow<'_, str> {
    clip_to(text, QUOTED)
}

/// Writes an error that may quote what a peer sent, shortened like it.
pub fn clip_error(error: &dyn fmt::Display) -> String {
    clip_to(&error.to_string(), TOLD).into_owned()
}

/// Shortens a text to a number of characters, and marks where it was cut.
pub fn clip_to(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_cut_between_characters() {
        assert_eq!(clip_to("größer", 6), "größer");
        assert_eq!(clip_to("größer", 3), "grö…");
        assert_eq!(clip_to("", 0), "");
        assert_eq!(clip(&"é".repeat(1 << 20)).chars().count(), QUOTED + 1);
    }
}

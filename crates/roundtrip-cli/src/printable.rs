//! Makes text of a server safe to print.

/// Escapes everything that a terminal obeys instead of showing: control characters (newlines too, with which a server
/// could imitate our own lines) and characters that change the direction of text.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns whether a character is C0, DEL or C1, a mark, embedding, override or isolate of direction, or a separator
/// of lines or paragraphs.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    /// E5: what a server sends cannot move the cursor, colour, clear, or turn what is shown.
    #[test]
    fn what_a_terminal_obeys_is_made_visible() {
        let cases = [
            ("\u{1b}[2J\u{1b}]0;title\u{7}", r"\u{1b}[2J\u{1b}]0;title\u{7}"),
            ("one\ntwo\rthree\t\u{8}", r"one\ntwo\rthree\t\u{8}"),
            ("\u{9b}31m\u{90}\u{7f}", r"\u{9b}31m\u{90}\u{7f}"),
            ("a\u{202e}b\u{202c}\u{2066}c\u{2069}", r"a\u{202e}b\u{202c}\u{2066}c\u{2069}"),
            ("\u{200f}\u{2028}\u{61c}", r"\u{200f}\u{2028}\u{61c}"),
        ];
        for (text, shown) in cases {
            assert_eq!(printable(text), shown);
        }
        for code in (0..=0x1f).chain(0x7f..=0x9f).chain(0x202a..=0x202e).chain(0x2066..=0x2069) {
            let c = char::from_u32(code).unwrap();
            assert!(!printable(&c.to_string()).contains(c), "{code:x}");
        }
    }

    #[test]
    fn other_text_is_shown_as_it_is() {
        for text in ["", "How many people?", "Grüße, 日本 \u{1f600}", "שלום", r"C:\n 'x' \"] {
            assert_eq!(printable(text), text);
        }
    }
}

//! Makes text of a server safe to print. Everything that a server says passes through here on its way to the terminal.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::Serialize;

/// Escapes everything that a terminal obeys instead of showing: control characters (newlines too, with which a server
/// could imitate our own lines) and characters that change the direction of text.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |_| false)
}

/// Escapes as [`printable`] does, but keeps lines and tabs: for text that stands by itself, such as a result.
pub(crate) fn printable_lines(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// Writes a value as JSON on one line, or indented. Characters that a terminal obeys are escaped as JSON has it, so that it is
/// the same value.
pub(crate) fn printable_json(value: &impl Serialize, indented: bool) -> String {
    let written = if indented { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    // What came as JSON goes as JSON.
    let text = written.unwrap_or_default();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // A newline can only be one of the indentation.
        if c != '\n' && is_obeyed(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if !keeps(c) && (is_obeyed(c) || !(c.is_ascii() || is_utf8())) {
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

/// Returns whether the locale has all characters. One that is not set counts as such.
fn is_utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
        locale.filter(|value| !value.is_empty()).map(|value| is_utf8_locale(&value)).next().unwrap_or(true)
    })
}

fn is_utf8_locale(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
        for text in ["", "How many people?", r"C:\n 'x' \"] {
            assert_eq!(printable(text), text);
        }
        if is_utf8() {
            for text in ["Grüße, 日本 \u{1f600}", "שלום"] {
                assert_eq!(printable(text), text);
            }
        }
    }

    #[test]
    fn results_keep_their_lines() {
        assert_eq!(printable_lines("a\tb\nc\u{1b}[1m\r"), "a\tb\nc\\u{1b}[1m\\r");
    }

    #[test]
    fn json_is_the_same_value_without_what_a_terminal_obeys() {
        let value = json!({ "a\u{9b}": ["\u{1b}[2J\u{7f}\u{202e}\n", "日本"] });
        for indented in [false, true] {
            let text = printable_json(&value, indented);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            assert!(text.chars().all(|c| c == '\n' || !is_obeyed(c)), "{text:?}");
        }
    }

    #[test]
    fn locales_say_whether_they_have_all_characters() {
        assert!(is_utf8_locale("de_DE.UTF-8") && is_utf8_locale("C.utf8"));
        assert!(!is_utf8_locale("C") && !is_utf8_locale("POSIX") && !is_utf8_locale("de_DE.ISO-8859-1"));
    }
}

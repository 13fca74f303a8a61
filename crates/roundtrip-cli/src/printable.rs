//! Makes text of a server safe to print. Everything that a server says passes through here on its way to the terminal.
//!
//! Invisible characters are shown, too: with them two names look the same, and text is hidden from people that a model reads.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::Serialize;

/// Escapes everything that a terminal obeys instead of showing: control characters (newlines too, with which a server
/// could imitate our own lines), characters that change the direction of text, and those that nobody sees.
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
    for (c, is_hidden) in judged(&text) {
        // A newline can only be one of the indentation.
        if c != '\n' && is_hidden {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, is_hidden) in judged(text) {
        if !keeps(c) && (is_hidden || !(c.is_ascii() || is_utf8())) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Iterates over the characters of a text, with whether each is obeyed by a terminal or not shown by it.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = None;
    let mut rest = text.chars();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && before.is_some_and(|c| is_joined(c) || is_virama(c))
            && rest.clone().next().is_some_and(is_joined);
        before = Some(c);
        Some((c, c.is_control() || is_unseen(c) && !joins))
    })
}

/// Returns whether a character is a letter of a script that is written with joiners, from Arabic to those of South Asia.
/// Between letters of other scripts a joiner changes nothing that is seen.
fn is_joined(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{1bff}') && c.is_alphabetic()
}

/// Returns whether a character is the sign that takes a vowel away, behind which joiners stand in scripts of India.
fn is_virama(c: char) -> bool {
    matches!(u32::from(c), 0x94d | 0x9cd | 0xa4d | 0xacd | 0xb4d | 0xbcd | 0xc4d | 0xccd | 0xd4d | 0xdca)
}

/// Returns whether a character is of the category `Cf`, or ignorable by default, or a separator of lines or paragraphs: marks,
/// embeddings, overrides and isolates of direction, joiners, fillers, tags, selectors of variants, and others without a shape.
fn is_unseen(c: char) -> bool {
    let place = UNSEEN.partition_point(|(_, last)| *last < c);
    UNSEEN.get(place).is_some_and(|(first, _)| *first <= c)
}

/// Ranges of characters that have no shape (Unicode 17: `Cf`, `Default_Ignorable_Code_Point`, `Zl` and `Zp`), in order.
const UNSEEN: [(char, char); 25] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

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

    /// E5: no two names look the same that are not, and no text is hidden from people.
    #[test]
    fn what_nobody_sees_is_made_visible() {
        let unseen =
            [0x200b, 0x2060, 0x2062, 0xfeff, 0xad, 0x180e, 0x3164, 0x115f, 0x34f, 0xfe0f, 0x1d173, 0x600];
        let ranges = (0x206a..=0x206f).chain(0xfff9..=0xfffb).chain(0xe0000..=0xe01ef);
        for code in unseen.into_iter().chain(ranges) {
            let c = char::from_u32(code).unwrap();
            assert_eq!(printable(&format!("a{c}b")), format!("a\\u{{{code:x}}}b"));
            let json = printable_json(&format!("a{c}b"), false);
            assert!(
                json.is_ascii() && serde_json::from_str::<String>(&json).unwrap() == format!("a{c}b"),
                "{json}"
            );
        }
        assert!(UNSEEN.is_sorted() && UNSEEN.iter().all(|(first, last)| first <= last));
    }

    /// Joiners belong to the spelling of Persian and Hindi, between letters alone. In other scripts nobody sees them.
    #[test]
    fn joiners_are_kept_between_letters_that_they_join() {
        for text in ["\u{645}\u{6cc}\u{200c}\u{62e}", "\u{915}\u{94d}\u{200d}\u{937}"] {
            assert_eq!(
                printable(text),
                if is_utf8() { text.to_owned() } else { text.escape_default().to_string() }
            );
        }
        for text in [
            "pay\u{200c}ment",
            "a\u{200d}",
            "\u{200c}\u{62e}",
            "\u{62e}\u{200c}\u{200c}\u{62e}",
            "\u{62e}\u{200c} ",
        ] {
            assert!(printable(text).contains(r"\u{200"), "{text:?}");
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
            assert!(judged(&text).all(|(c, is_hidden)| c == '\n' || !is_hidden), "{text:?}");
        }
    }

    #[test]
    fn locales_say_whether_they_have_all_characters() {
        assert!(is_utf8_locale("de_DE.UTF-8") && is_utf8_locale("C.utf8"));
        assert!(!is_utf8_locale("C") && !is_utf8_locale("POSIX") && !is_utf8_locale("de_DE.ISO-8859-1"));
    }
}

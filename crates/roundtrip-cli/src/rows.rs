//! Text of others on the rows of a terminal: wrapped by hand, so that no row of it looks like ours.

use std::io::IsTerminal as _;

/// Mark at the beginning of a row that continues text of others.
pub(crate) const MARK: &str = "| ";
/// Most blanks side by side. More would push text to another row of the terminal.
const ENOUGH_BLANKS: &str = "   ";
/// End of a text that is cut off.
const CUT: &str = "..";
/// Number of columns that a terminal is thought to have at least.
const NARROW: usize = 20;

/// Place that rows are written to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Screen {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Screen {
    /// Returns its number of columns. A file has rows of any length.
    pub(crate) fn columns(self) -> usize {
        let is_terminal = match self {
            Self::Out => std::io::stdout().is_terminal(),
            Self::Err => std::io::stderr().is_terminal(),
        };
        // A terminal that does not say its size is as wide as terminals were.
        if is_terminal { self.size().unwrap_or(80).max(NARROW) } else { usize::MAX }
    }

    #[cfg(unix)]
    fn size(self) -> Option<usize> {
        let size = match self {
            Self::Out => rustix::termios::tcgetwinsize(std::io::stdout()),
            Self::Err => rustix::termios::tcgetwinsize(std::io::stderr()),
        };
        size.ok().map(|size| size.ws_col.into()).filter(|columns| *columns > 0)
    }

    #[cfg(not(unix))]
    fn size(self) -> Option<usize> {
        crossterm::terminal::size().ok().map(|(columns, _)| columns.into())
    }

    /// Wraps text behind a beginning of ours. The text is printable, but for styles of ours; each further row of it is marked.
    pub(crate) fn rows(self, lead: &str, text: &str) -> String {
        wrapped(lead, text, self.columns())
    }

    /// Wraps text as [`rows`](Self::rows) does, on about so many rows at most, and cuts the rest off.
    pub(crate) fn rows_at_most(self, most: usize, lead: &str, text: &str) -> String {
        let columns = self.columns().saturating_sub(MARK.len()).saturating_mul(most);
        self.rows(lead, &clipped(text, columns))
    }

    /// Cuts a name off, so that half of the row is left for what stands beside it.
    pub(crate) fn name(self, text: &str) -> String {
        clipped(text, self.columns() / 2)
    }

    /// Cuts text of one row off, so that so many columns are left.
    pub(crate) fn clipped(self, text: &str, left: usize) -> String {
        clipped(text, self.columns().saturating_sub(left).max(NARROW / 2))
    }
}

fn wrapped(lead: &str, text: &str, columns: usize) -> String {
    let indent = lead.len() - lead.trim_start_matches(' ').len();
    let mut rows = Rows { shown: lead.to_owned(), at: width(lead), indent, columns };
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            rows.next();
        }
        rows.line(line);
    }
    rows.shown
}

/// Rows that are being written.
struct Rows {
    shown: String,
    /// Column of the next character.
    at: usize,
    indent: usize,
    columns: usize,
}

impl Rows {
    fn next(&mut self) {
        self.shown.push('\n');
        self.shown.extend(std::iter::repeat_n(' ', self.indent));
        self.shown.push_str(MARK);
        self.at = self.indent + MARK.len();
    }

    fn line(&mut self, line: &str) {
        for (number, part) in line.split(is_blank).enumerate() {
            let blanks = usize::from(number > 0);
            self.word(part, blanks);
        }
    }

    /// Writes a word behind a blank, on the next row if that has room for it. Empty words are blanks side by side.
    fn word(&mut self, word: &str, blanks: usize) {
        let size = width(word);
        let has_room = |at: usize| at.saturating_add(blanks + size) <= self.columns;
        if !has_room(self.at) && has_room(self.indent + MARK.len()) {
            self.next();
        } else if blanks > 0 && self.at < self.columns && !self.shown.ends_with(ENOUGH_BLANKS) {
            self.shown.push(' ');
            self.at += 1;
        }
        let mut is_style = false;
        for c in word.chars() {
            is_style |= c == '\u{1b}';
            let size = if is_style { 0 } else { columns_of(c) };
            if self.at.saturating_add(size) > self.columns {
                self.next();
            }
            self.at += size;
            self.shown.push(c);
            is_style &= c != 'm';
        }
    }
}

/// Returns a text on one row of so many columns at most, which ends with dots if it was longer.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    let text = wrapped("", text, usize::MAX);
    if width(&text) <= columns {
        return text;
    }
    let mut left = columns.saturating_sub(CUT.len());
    let fits = |c: &char| {
        let size = columns_of(*c);
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    };
    text.chars().take_while(fits).chain(CUT.chars()).collect()
}

/// Returns whether a character is a blank.
pub(crate) fn is_blank(c: char) -> bool {
    // The pattern of Braille without dots is a blank that counts as a symbol.
    c != '\n' && (c.is_whitespace() || c == '\u{2800}')
}

/// Returns the columns that a character takes at most. Of others than ASCII, some take two.
fn columns_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Returns the columns of a text, without our styles.
fn width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let columns = |text: &str| text.chars().map(columns_of).sum::<usize>();
    let first = parts.next().map_or(0, columns);
    first + parts.map(|part| columns(part.split_once('m').map_or("", |(_, text)| text))).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E5: a row that a terminal would begin with text of others is begun by a mark.
    #[test]
    fn further_rows_are_marked() {
        let cases = [
            ("roundtrip: ", "short", "roundtrip: short"),
            ("roundtrip: ", "one two three four", "roundtrip: one two\n| three four"),
            ("roundtrip: ", "one\ntwo", "roundtrip: one\n| two"),
            ("  name: ", "one two three", "  name: one two\n  | three"),
            ("| ", "abcdefghijklmnopqrstuvwxyz", "| abcdefghijklmnopqr\n| stuvwxyz"),
            ("", "日本日本日本日本日本日本", "日本日本日本日本日本\n| 日本"),
            ("> ", "a            b\u{2800}\u{3000}\t  c", "> a   b   c"),
            ("> ", "                        b", ">   b"),
        ];
        for (lead, text, rows) in cases {
            assert_eq!(wrapped(lead, text, 20), rows);
            assert!(wrapped(lead, text, 20).split('\n').all(|row| width(row) <= 20), "{text}");
        }
    }

    #[test]
    fn styles_of_ours_take_no_columns() {
        let bold = anstyle::Style::new().bold();
        let text = format!("{bold}one two{bold:#} three {bold}four five{bold:#}");
        let wrapped = wrapped("", &text, 20);
        let plain = anstream::adapter::strip_str(&wrapped).to_string();
        assert_eq!(plain, "one two three four\n| five");
    }

    #[test]
    fn long_names_are_cut_off() {
        assert_eq!(clipped("short", 10), "short");
        assert_eq!(clipped("a name that is long", 10), "a name t..");
        assert_eq!(clipped("日本日本日本", 9), "日本日..");
        assert_eq!(clipped(&format!("a{}b", " ".repeat(99)), 10), "a   b");
    }
}

//! Files of variables (`envFile`): `NAME=value` a line, with comments and quotes.

/// Reads the variables of a file's text.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| variable(line).ok_or_else(|| wrong(at + 1))).collect()
}

// The line may be a secret, and is not shown.
fn wrong(line: usize) -> String {
    format!("line {line} is not a variable: write `NAME=value`, and end what begins with a quote by one")
}

fn variable(line: &str) -> Option<(String, String)> {
    let (name, text) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    Some((name.to_owned(), value(text)?)).filter(|_| is_name)
}

/// Reads a value, which may stand in quotes; `None` if these do not end.
fn value(text: &str) -> Option<String> {
    let mut rest = text.trim_start().chars();
    let quote = match rest.next() {
        Some(quote @ ('"' | '\'')) => quote,
        _ => return Some(text.split(" #").next().unwrap_or_default().trim().to_owned()),
    };
    let mut value = String::new();
    loop {
        match rest.next()? {
            c if c == quote => break,
            '\\' if quote == '"' => value.push(match rest.next()? {
                'n' => '\n',
                c => c,
            }),
            c => value.push(c),
        }
    }
    let behind = rest.as_str().trim_start();
    (behind.is_empty() || behind.starts_with('#')).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lines_are_variables() {
        let text = "# all\n\nA=1\n export B = two words # why\nC=a#b=c\nD=' #x\\n '\nE=\"a\\n\\\"b\\\"\" # why\nF=\nG= # none\r\n";
        let wanted = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a#b=c"),
            ("D", " #x\\n "),
            ("E", "a\n\"b\""),
            ("F", ""),
            ("G", ""),
        ];
        let wanted: Vec<_> = wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(parse(text), Ok(wanted));
    }

    #[test]
    fn other_lines_are_named_by_their_number() {
        for wrong in ["word", "=value", "two words=1", "A='open", "A=\"open\\\"", "A='b' c"] {
            let why = parse(&format!("FINE=1\n{wrong}\n")).unwrap_err();
            assert!(why.contains("line 2") && !why.contains("open"), "{wrong}: {why}");
        }
    }
}

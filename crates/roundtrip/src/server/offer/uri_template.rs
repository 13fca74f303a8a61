//! URI templates (RFC 6570), read backwards: from a URI to its variables, safely.

use std::fmt;

/// A parsed template: literals and variables in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// `{name}` stays within a path segment; `{+name}` may span several.
    Variable {
        name: String,
        spans: bool,
    },
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// Matching has to be unambiguous and linear, so only `{name}` and `{+name}` are taken, one variable at a
    /// time, with literal text between two of them.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            } else if matches!(parts.last(), Some(Part::Variable { .. })) {
                return Err("two variables need literal text between them".into());
            }
            let close = rest[open..].find('}').ok_or("a `{` is not closed")? + open;
            let expression = &rest[open + 1..close];
            let (name, spans) = expression.strip_prefix('+').map_or((expression, false), |name| (name, true));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(plain) {
                return Err(format!("`{{{expression}}}`: use `{{name}}` or, to span slashes, `{{+name}}`"));
            }
            if parts.iter().any(|part| matches!(part, Part::Variable { name: other, .. } if other == name)) {
                return Err(format!("the variable `{name}` occurs twice"));
            }
            parts.push(Part::Variable { name: name.to_owned(), spans });
            rest = &rest[close + 1..];
        }
        if rest.contains('}') {
            return Err("a `}` has no `{`".into());
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the names of the variables, in order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// Returns the variables of a URI that fits, percent-decoded.
    ///
    /// A URI fits only if its variables are safe to build a path from: none decodes to `.` or `..`, to text
    /// with a NUL or a backslash, or, in `{name}`, to text with a slash.
    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let mut found = Vec::new();
        let mut rest = uri;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Variable { name, spans } => {
                    let end = match self.parts.get(index + 1) {
                        Some(Part::Literal(next)) if index + 2 == self.parts.len() => {
                            // The last literal must end the URI, so look for it there.
                            rest.ends_with(next.as_str()).then(|| rest.len() - next.len())?
                        }
                        Some(Part::Literal(next)) => rest.find(next.as_str())?,
                        _ => rest.len(),
                    };
                    found.push((name.as_str(), decode(&rest[..end], *spans)?));
                    rest = &rest[end..];
                }
            }
        }
        rest.is_empty().then_some(found)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Decodes one variable, or refuses it as unsafe.
fn decode(raw: &str, spans: bool) -> Option<String> {
    if raw.is_empty() || raw.contains(['?', '#']) || (!spans && raw.contains('/')) {
        return None;
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut input = raw.bytes();
    while let Some(byte) = input.next() {
        if byte == b'%' {
            let high = char::from(input.next()?).to_digit(16)?;
            let low = char::from(input.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let unsafe_segment = |segment: &str| matches!(segment, "." | "..");
    let refused =
        text.contains(['\0', '\\']) || (!spans && text.contains('/')) || text.split('/').any(unsafe_segment);
    (!refused).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(template: &str, uri: &str) -> Option<Vec<String>> {
        let template = UriTemplate::parse(template).expect(template);
        template.matches(uri).map(|found| found.into_iter().map(|(_, value)| value).collect())
    }

    fn some(values: &[&str]) -> Option<Vec<String>> {
        Some(values.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn variables_are_found_and_decoded() {
        assert_eq!(variables("test://template/{id}/data", "test://template/42/data"), some(&["42"]));
        assert_eq!(variables("a://{x}/b/{y}", "a://1/b/2"), some(&["1", "2"]));
        assert_eq!(variables("a://{x}", "a://caf%C3%A9%20au"), some(&["café au"]));
        assert_eq!(variables("file:///{+path}", "file:///a/b%20c.txt"), some(&["a/b c.txt"]));
        assert_eq!(variables("a://{x}.txt", "a://b.txt.txt"), some(&["b.txt"]));
        assert_eq!(variables("a://fixed", "a://fixed"), some(&[]));
    }

    /// N6: template variables are decoded safely: nothing that could leave the path it stands in.
    #[test]
    fn unsafe_variables_do_not_match() {
        for uri in [
            "a://..",
            "a://.",
            "a://%2e%2e",
            "a://x%2Fy",
            "a://x/y",
            "a://%00",
            "a://a%5Cb",
            "a://%zz",
            "a://",
        ] {
            assert_eq!(variables("a://{x}", uri), None, "{uri}");
        }
        for uri in ["file:///a/../b", "file:///%2e%2e/b", "file:///a/..", "file:///a%2f..%2fb", "file:///%ff"]
        {
            assert_eq!(variables("file:///{+path}", uri), None, "{uri}");
        }
    }

    #[test]
    fn ambiguous_templates_are_refused_with_advice() {
        for template in ["{a}{b}", "{a", "a}", "{}", "{?q}", "{a:3}", "{a*}", "{a}/{a}"] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}

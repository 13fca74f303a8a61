//! Framing by lines: stdio and event streams.

/// Replaces the line breaks in a serialised message by spaces, so that it fits on one line of stdio and into one `data`
/// field of an event stream (transports, "stdio").
///
/// A message may hold text that is passed on as it came ([`Raw`](super::Raw)), and that text may be spread over lines.
/// JSON has line breaks as they are only between its tokens, where a space means the same: within strings they are
/// escaped.
pub fn one_line(message: &mut [u8]) {
    let mut rest = message;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1: every line break goes, and nothing else changes; what a string holds is escaped and stays.
    #[test]
    fn line_breaks_between_tokens_turn_into_spaces() {
        for (text, expected) in [
            ("", ""),
            ("{}", "{}"),
            ("\n{\r\n\"a\" :\n\n1}\r", " {  \"a\" :  1} "),
            ("{\"a\\n\":\"\\r\\u000a\u{2028}\"}", "{\"a\\n\":\"\\r\\u000a\u{2028}\"}"),
        ] {
            let mut message = text.as_bytes().to_vec();
            one_line(&mut message);
            assert_eq!(String::from_utf8(message).expect("UTF-8"), expected);
        }
    }

    /// I1: the value stays the same, however it is spread.
    #[test]
    fn the_value_stays_the_same() {
        let value = serde_json::json!({ "a": [1, "x\ny\r", { "b\n": null }], "c": [] });
        let mut text = serde_json::to_vec_pretty(&value).expect("serialises");
        one_line(&mut text);
        assert!(!text.contains(&b'\n'));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&text).expect("JSON"), value);
    }
}

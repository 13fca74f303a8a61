//! `application/x-www-form-urlencoded`: names and values in queries and bodies.

use std::fmt::Write as _;

use zeroize::Zeroizing;

/// Longest text that is read, in bytes.
const LONGEST: usize = 16 * 1024;
/// Greatest number of pairs that are read.
const MOST: usize = 64;

/// Names and values as they are written into a query or a body. They are wiped when dropped.
#[derive(Default)]
pub(super) struct Pairs(Zeroizing<String>);

impl Pairs {
    pub(super) fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        encode_into(&mut self.0, name);
        self.0.push('=');
        encode_into(&mut self.0, value);
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Encodes one name or value.
pub(super) fn encode(text: &str) -> Zeroizing<String> {
    let mut encoded = Zeroizing::new(String::with_capacity(text.len()));
    encode_into(&mut encoded, text);
    encoded
}

fn encode_into(to: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => to.push(char::from(byte)),
            b' ' => to.push('+'),
            // Writing to a string does not fail.
            other => drop(write!(to, "%{other:02X}")),
        }
    }
}

/// Reads names and values. `None` means that they are too many, or not UTF-8 in this encoding.
pub(super) fn parse(text: &str) -> Option<Vec<(String, String)>> {
    if text.len() > LONGEST || text.split('&').count() > MOST {
        return None;
    }
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    };
    text.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

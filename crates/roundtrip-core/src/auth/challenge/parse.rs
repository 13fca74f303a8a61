//! The grammar of challenges, read in one pass with one step back.

use super::{Challenge, ChallengeError};

/// Greatest number of challenges that are read.
pub(super) const MOST_CHALLENGES: usize = 16;
/// Greatest number of parameters of one challenge.
const MOST_PARAMS: usize = 32;
/// Longest field, in bytes.
const LONGEST: usize = 8 * 1024;

pub(super) fn challenges(field: &str) -> Result<Vec<Challenge>, ChallengeError> {
    if field.len() > LONGEST {
        return Err(ChallengeError::TooMany);
    }
    let mut reader = Reader { rest: field };
    let mut found = Vec::new();
    while reader.skip_commas() {
        if found.len() == MOST_CHALLENGES {
            return Err(ChallengeError::TooMany);
        }
        found.push(reader.challenge()?);
    }
    Ok(found)
}

/// `tchar` of RFC 9110.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_token68_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte)
}

/// Bytes of a value without quotes. URLs are tolerated there, as they occur.
fn is_bare_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',')
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn challenge(&mut self) -> Result<Challenge, ChallengeError> {
        let mut challenge = Challenge::of(self.take(is_token_byte).ok_or(ChallengeError::Malformed)?);
        if !self.rest.is_empty() && !self.rest.starts_with([' ', ',']) {
            return Err(ChallengeError::Malformed);
        }
        self.skip_blanks();
        challenge.token = self.token68().map(str::to_owned);
        if challenge.token.is_none() {
            self.params(&mut challenge)?;
        }
        Ok(challenge)
    }

    /// Takes a token in place of parameters: one that ends the challenge.
    fn token68(&mut self) -> Option<&'a str> {
        let length = self.rest.bytes().take_while(|byte| is_token68_byte(*byte)).count();
        let padding = self.rest[length..].bytes().take_while(|byte| *byte == b'=').count();
        let (token, rest) = self.rest.split_at(length + padding);
        let after = rest.trim_start_matches([' ', '\t']);
        let ends = length > 0 && (after.is_empty() || after.starts_with(','));
        ends.then(|| {
            self.rest = after;
            token
        })
    }

    /// Takes parameters up to the end or to the next scheme.
    fn params(&mut self, challenge: &mut Challenge) -> Result<(), ChallengeError> {
        loop {
            let before = self.rest;
            if !self.skip_commas() {
                return Ok(());
            }
            let Some(name) = self.param_name() else {
                self.rest = before;
                return self.at_comma();
            };
            let value = self.value()?;
            if challenge.param(name).is_some() {
                return Err(ChallengeError::Duplicate);
            }
            if challenge.params.len() == MOST_PARAMS {
                return Err(ChallengeError::TooMany);
            }
            challenge.params.push((name.to_owned(), value));
            self.skip_blanks();
            if !self.rest.is_empty() && !self.rest.starts_with(',') {
                return Err(ChallengeError::Malformed);
            }
        }
    }

    /// Accepts the end of a challenge in front of a comma alone: two schemes are never side by side.
    fn at_comma(&self) -> Result<(), ChallengeError> {
        if self.rest.starts_with(',') { Ok(()) } else { Err(ChallengeError::Malformed) }
    }

    /// Takes `name =`, if that is next.
    fn param_name(&mut self) -> Option<&'a str> {
        let name = self.take(is_token_byte)?;
        self.skip_blanks();
        self.rest = self.rest.strip_prefix('=')?;
        self.skip_blanks();
        Some(name)
    }

    fn value(&mut self) -> Result<String, ChallengeError> {
        match self.rest.strip_prefix('"') {
            Some(rest) => {
                self.rest = rest;
                self.quoted()
            }
            None => self.take(is_bare_byte).map(str::to_owned).ok_or(ChallengeError::Malformed),
        }
    }

    /// Takes the rest of a quoted string.
    fn quoted(&mut self) -> Result<String, ChallengeError> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, char)) = chars.next() {
            let char = match char {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(value);
                }
                '\\' => chars.next().ok_or(ChallengeError::Malformed)?.1,
                other => other,
            };
            if char.is_control() && char != '\t' {
                return Err(ChallengeError::Malformed);
            }
            value.push(char);
        }
        Err(ChallengeError::Malformed)
    }

    /// Takes one or more bytes of a kind.
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> Option<&'a str> {
        let length = self.rest.bytes().take_while(|byte| fits(*byte)).count();
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        (!taken.is_empty()).then_some(taken)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips blanks and commas, of which a list may have empty ones. Returns whether something is left.
    fn skip_commas(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
        !self.rest.is_empty()
    }
}

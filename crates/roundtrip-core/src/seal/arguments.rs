//! Digests of a call's arguments: of their meaning, not their spelling.
//!
//! A client that makes its request anew for the retry may order properties differently, or write `1` for `1.0`.
//! So the arguments are brought into canonical form first, in one pass over the text and without a tree. The parser is
//! our own because that form must not depend on how numbers are read elsewhere: as decimals they compare exactly,
//! whatever their size, and no feature of another crate in the build can change that.

use super::Digest;
use super::canonical::Canonical;
use crate::wire::json;

/// Deepest nesting, the same as that of `serde_json`, so that no handler could read more.
const MAX_DEPTH: usize = 128;

/// Digests a request's arguments, given as JSON. Absent arguments are the same as `{}`.
///
/// Equal are: texts that differ in white space, in the order of properties, in how characters are escaped, and in
/// how a number is written (`10`, `10.0`, `1e1`; `-0` is `0`). Numbers are compared as decimals, not as doubles.
///
/// # Errors
/// Fails if the text is not JSON, is nested too deep, or names a property twice in one object: two readers could take
/// such a text for two different calls.
pub fn digest_arguments(arguments: Option<&str>) -> Result<Digest, ArgumentsError> {
    let text = arguments.unwrap_or("{}");
    // Lengths take more bytes than quotes and commas.
    let mut scan =
        Scan { text, at: 0, depth: 0, canonical: Canonical::with_capacity(text.len() * 3 / 2 + 64) };
    scan.value()?;
    scan.blanks();
    if scan.at != text.len() {
        return Err(ArgumentsError::Malformed);
    }
    Ok(scan.canonical.digest())
}

/// Digests arguments that are all text, as a prompt's are, to the digest of the equivalent JSON object.
///
/// # Errors
/// Fails if a name is given twice.
pub fn digest_text_arguments<'a>(
    arguments: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Digest, ArgumentsError> {
    let mut canonical = Canonical::with_capacity(128);
    let object = canonical.begin_object();
    for (name, value) in arguments {
        let start = canonical.here();
        canonical.string(name);
        let name_end = canonical.here();
        canonical.string(value);
        canonical.property(start, name_end);
    }
    canonical.end_object(object)?;
    Ok(canonical.digest())
}

/// Reason arguments have no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// Not JSON, or a number or string out of range.
    #[error("the arguments are not json")]
    Malformed,
    /// Nested too deep.
    #[error("the arguments are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// An object with two properties of one name.
    #[error("the arguments name a property twice")]
    DuplicateName,
}

/// Parser that writes JSON in its canonical form.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    canonical: Canonical,
}

impl<'a> Scan<'a> {
    fn value(&mut self) -> Result<(), ArgumentsError> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => Err(ArgumentsError::Malformed),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), ArgumentsError>,
    ) -> Result<(), ArgumentsError> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ArgumentsError::TooDeep);
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), ArgumentsError> {
        let object = self.canonical.begin_object();
        self.blanks();
        if !self.eat(b'}') {
            loop {
                self.blanks();
                let start = self.canonical.here();
                self.string()?;
                let name_end = self.canonical.here();
                self.blanks();
                self.expect(b':')?;
                self.value()?;
                self.canonical.property(start, name_end);
                self.blanks();
                if self.eat(b'}') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        self.canonical.end_object(object)
    }

    fn array(&mut self) -> Result<(), ArgumentsError> {
        self.canonical.tag(b'[');
        self.blanks();
        if !self.eat(b']') {
            loop {
                self.value()?;
                self.blanks();
                if self.eat(b']') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        self.canonical.tag(b']');
        Ok(())
    }

    fn string(&mut self) -> Result<(), ArgumentsError> {
        let start = self.at;
        self.expect(b'"')?;
        let mut escaped = false;
        loop {
            match self.peek().ok_or(ArgumentsError::Malformed)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                0..0x20 => return Err(ArgumentsError::Malformed),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at).ok_or(ArgumentsError::Malformed)?;
        if escaped {
            let plain: String = json::from_str(quoted).map_err(|_| ArgumentsError::Malformed)?;
            self.canonical.string(&plain);
        } else {
            self.canonical.string(&quoted[1..quoted.len() - 1]);
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ArgumentsError> {
        let negative = self.eat(b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with(b"0") {
            return Err(ArgumentsError::Malformed);
        }
        let fraction = if self.eat(b'.') { self.digits()? } else { &[] };
        let mut exponent = Some(0);
        if self.eat(b'e') || self.eat(b'E') {
            let start = self.at;
            let _ = self.eat(b'-') || self.eat(b'+');
            self.digits()?;
            exponent = self.text.get(start..self.at).and_then(|text| text.parse().ok());
        }
        self.canonical.number(negative, whole, fraction, exponent)
    }

    fn digits(&mut self) -> Result<&'a [u8], ArgumentsError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        rest.get(..digits).filter(|digits| !digits.is_empty()).ok_or(ArgumentsError::Malformed)
    }

    fn literal(&mut self, word: &str) -> Result<(), ArgumentsError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(ArgumentsError::Malformed);
        }
        self.at += word.len();
        self.canonical.tag(word.as_bytes()[0]);
        Ok(())
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), ArgumentsError> {
        if self.eat(byte) { Ok(()) } else { Err(ArgumentsError::Malformed) }
    }
}

//! The one form that equal arguments have, as bytes to be digested.
//!
//! Every value begins with a byte that says its kind, and is as long as it says or ends with a byte that cannot be
//! inside it, so that no two different values have the same bytes. It is never stored and never read back.

use super::{ArgumentsError, Digest};

pub(super) struct Form {
    out: Vec<u8>,
    /// The properties of all objects that are open, the outermost first.
    properties: Vec<Property>,
}

/// Where a property is in the output.
struct Property {
    start: usize,
    name_end: usize,
    end: usize,
}

/// An object that is being written.
#[derive(Clone, Copy)]
pub(super) struct Object {
    content: usize,
    first: usize,
}

impl Form {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), properties: Vec::with_capacity(8) }
    }

    pub(super) fn digest(&self) -> Digest {
        Digest::of("arguments", &[&self.out])
    }

    /// A byte that stands for itself.
    pub(super) fn tag(&mut self, tag: u8) {
        self.out.push(tag);
    }

    pub(super) fn string(&mut self, text: &str) {
        self.out.push(b'"');
        self.out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.out.extend_from_slice(text.as_bytes());
    }

    /// A number, given as it was written: its digits without zeros at either end, and the exponent that goes with
    /// them. No exponent means one that does not fit, which matters to every number but zero.
    pub(super) fn number(
        &mut self,
        negative: bool,
        whole: &[u8],
        fraction: &[u8],
        exponent: Option<i64>,
    ) -> Result<(), ArgumentsError> {
        self.out.push(b'#');
        let start = self.out.len();
        self.out.extend(whole.iter().chain(fraction).skip_while(|digit| **digit == b'0'));
        let written = self.out.len();
        while self.out.len() > start && self.out.last() == Some(&b'0') {
            self.out.pop();
        }
        let is_zero = self.out.len() == start;
        let exponent = if is_zero {
            0
        } else {
            let zeros = (written - self.out.len()) as i64;
            let shift = zeros - fraction.len() as i64;
            exponent.and_then(|exponent| exponent.checked_add(shift)).ok_or(ArgumentsError::Malformed)?
        };
        self.out.push(if negative && !is_zero { b'-' } else { b'+' });
        self.out.extend_from_slice(&exponent.to_le_bytes());
        Ok(())
    }

    pub(super) fn begin_object(&mut self) -> Object {
        self.out.push(b'{');
        Object { content: self.out.len(), first: self.properties.len() }
    }

    /// Where the output stands: before a property's name, and after it.
    pub(super) fn here(&self) -> usize {
        self.out.len()
    }

    /// Ends a property.
    pub(super) fn property(&mut self, start: usize, name_end: usize) {
        self.properties.push(Property { start, name_end, end: self.out.len() });
    }

    /// Ends an object: its properties change places until they are in order. Which order does not matter, as long
    /// as it is always the same.
    pub(super) fn end_object(&mut self, object: Object) -> Result<(), ArgumentsError> {
        let Self { out, properties } = self;
        let name = |property: &Property| &out[property.start..property.name_end];
        let mine = &mut properties[object.first..];
        if !mine.is_sorted_by(|a, b| name(a) < name(b)) {
            mine.sort_unstable_by(|a, b| name(a).cmp(name(b)));
            if mine.windows(2).any(|pair| name(&pair[0]) == name(&pair[1])) {
                return Err(ArgumentsError::DuplicateName);
            }
            // Written anew behind what is there, and then put in its place.
            let end = out.len();
            for property in mine {
                out.extend_from_within(property.start..property.end);
            }
            out.copy_within(end.., object.content);
            out.truncate(end);
        }
        properties.truncate(object.first);
        out.push(b'}');
        Ok(())
    }
}

//! Canonical form of a call's arguments: equal arguments have equal bytes, to be digested.
//!
//! Every value begins with a byte for its kind, and has its length in front or ends with a byte that cannot be inside
//! it, so that no two different values have the same bytes. The form is never stored and never read back.

use std::borrow::Cow;
use std::ops::Range;

use super::{ArgumentsError, Digest};

/// Writer of the canonical form.
pub(super) struct Canonical {
    /// The output, with the properties of objects in the order they came.
    out: Vec<u8>,
    /// The properties of all open objects, the outermost first.
    properties: Vec<Property>,
    /// Objects whose properties have to be sorted.
    unsorted: Vec<Unsorted>,
    /// The sorted properties of those objects.
    sorted: Vec<Property>,
}

/// Position of a property in the output.
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

/// An object whose properties came in another order, and their range in `sorted`.
struct Unsorted {
    content: Range<usize>,
    properties: Range<usize>,
}

impl Canonical {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
            properties: Vec::with_capacity(8),
            unsorted: Vec::new(),
            sorted: Vec::new(),
        }
    }

    pub(super) fn digest(mut self) -> Digest {
        Digest::of("arguments", &[&self.in_order()])
    }

    /// Returns the output with the properties of every object sorted. Each byte is copied at most once, however deep
    /// the objects are: they are sorted here, and not each time one ends.
    fn in_order(&mut self) -> Cow<'_, [u8]> {
        if self.unsorted.is_empty() {
            return Cow::Borrowed(&self.out);
        }
        // Objects ended inside out; now they are looked up by where they begin.
        self.unsorted.sort_unstable_by_key(|object| object.content.start);
        let mut ordered = Vec::with_capacity(self.out.len());
        self.copy_in_order(0..self.out.len(), &mut ordered);
        Cow::Owned(ordered)
    }

    /// Copies a part of the output with its unsorted objects in order. The recursion is as deep as the nesting, which
    /// the parser limits.
    fn copy_in_order(&self, part: Range<usize>, ordered: &mut Vec<u8>) {
        let mut at = part.start;
        // What lies in a part begins after the part does: with a brace before it, or a name. What begins where the part
        // does is the object that the part is a property of.
        let mut next = self.unsorted.partition_point(|object| object.content.start <= at);
        while let Some(object) = self.unsorted.get(next).filter(|object| object.content.start < part.end) {
            ordered.extend_from_slice(&self.out[at..object.content.start]);
            for property in &self.sorted[object.properties.clone()] {
                self.copy_in_order(property.start..property.end, ordered);
            }
            at = object.content.end;
            next = self.unsorted.partition_point(|object| object.content.start <= at);
        }
        ordered.extend_from_slice(&self.out[at..part.end]);
    }

    /// Writes a byte that is a whole value or a bracket.
    pub(super) fn tag(&mut self, tag: u8) {
        self.out.push(tag);
    }

    pub(super) fn string(&mut self, text: &str) {
        self.out.push(b'"');
        self.out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes a number, given as it was written: its digits without zeros at either end, and the exponent that goes
    /// with them. `None` is an exponent out of range, an error for every number but zero.
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

    /// Returns the length of the output, to mark where a property's name starts and ends.
    pub(super) fn here(&self) -> usize {
        self.out.len()
    }

    /// Ends a property.
    pub(super) fn property(&mut self, start: usize, name_end: usize) {
        self.properties.push(Property { start, name_end, end: self.out.len() });
    }

    /// Ends an object. Any order of properties will do, as long as it is always the same.
    pub(super) fn end_object(&mut self, object: Object) -> Result<(), ArgumentsError> {
        let Self { out, properties, .. } = self;
        let name = |property: &Property| &out[property.start..property.name_end];
        let mine = &mut properties[object.first..];
        if mine.is_sorted_by(|a, b| name(a) < name(b)) {
            properties.truncate(object.first);
        } else {
            mine.sort_unstable_by(|a, b| name(a).cmp(name(b)));
            if mine.windows(2).any(|pair| name(&pair[0]) == name(&pair[1])) {
                return Err(ArgumentsError::DuplicateName);
            }
            let first = self.sorted.len();
            self.sorted.extend(self.properties.drain(object.first..));
            let properties = first..self.sorted.len();
            self.unsorted.push(Unsorted { content: object.content..self.out.len(), properties });
        }
        self.out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However deep unsorted objects are nested, ordering them copies every byte once: the buffer they are copied into
    /// is as long as what is copied, and never grows.
    #[test]
    fn nested_objects_are_ordered_in_one_copy() {
        let mut canonical = Canonical::with_capacity(0);
        let mut open = Vec::new();
        for _ in 0..100 {
            let object = canonical.begin_object();
            let start = canonical.here();
            canonical.string("b");
            let name_end = canonical.here();
            canonical.tag(b'n');
            canonical.property(start, name_end);
            let start = canonical.here();
            canonical.string("a");
            open.push((object, start, canonical.here()));
        }
        canonical.tag(b'n');
        for (object, start, name_end) in open.into_iter().rev() {
            canonical.property(start, name_end);
            let before = canonical.here();
            canonical.end_object(object).expect("no name twice");
            assert_eq!(canonical.here(), before + 1, "nothing but the end is written when an object ends");
        }
        let length = canonical.here();
        let Cow::Owned(ordered) = canonical.in_order() else { panic!("it was in order") };
        assert_eq!((ordered.len(), ordered.capacity()), (length, length));
    }
}

//! Structs by the names of their fields. Serde's derive reads a struct from a list too, by position: a gateway
//! that looks for `method` or `name` in the text of such a message does not find it.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

/// Deserializer that reads structs, and variants with named fields, from objects only, at every depth.
///
/// Lists, tuples and tuple structs are still lists. The seeds, entries and variants through which the values
/// inside are read are wrapped in it too.
///
/// Serde buffers the content of untagged, internally tagged and flattened types, and reads it without this
/// wrapper. With a note of [`Lists`] ([`noting`](Self::noting)) it is known afterwards that there was a list in such
/// content.
#[derive(Debug)]
pub struct ByName<T, N = ()>(T, N);

impl<T> ByName<T> {
    /// Wraps a deserializer.
    pub const fn new(deserializer: T) -> Self {
        Self(deserializer, ())
    }
}

impl<'n, T> ByName<T, &'n Lists> {
    /// Wraps a deserializer, and notes lists that were read without a known type.
    pub const fn noting(deserializer: T, lists: &'n Lists) -> Self {
        Self(deserializer, lists)
    }
}

impl<T, N: Note> ByName<T, N> {
    /// Wraps a deserializer with a place for a note.
    pub(super) const fn with(deserializer: T, note: N) -> Self {
        Self(deserializer, note)
    }
}

/// Note of a list that was read without a known type: into serde's buffer, from which a struct may be read by position,
/// or into a generic value.
#[derive(Debug, Default)]
pub struct Lists(Cell<bool>);

impl Lists {
    /// Returns whether there was such a list.
    pub fn any(&self) -> bool {
        self.0.get()
    }
}

/// Refusal of lists that would be read without a known type. It has no size: types that are not buffered are read as fast as
/// without it.
#[derive(Debug, Clone, Copy)]
pub struct NoLists;

/// Reaction to a list that is read without a known type. The unit type has none.
pub trait Note: Copy {
    /// Takes note of a list.
    ///
    /// # Errors
    /// Fails if there may be none.
    fn list<E: de::Error>(self) -> Result<(), E>;
}

impl Note for () {
    #[inline]
    fn list<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Note for &Lists {
    #[inline]
    fn list<E: de::Error>(self) -> Result<(), E> {
        self.0.set(true);
        Ok(())
    }
}

impl Note for NoLists {
    #[cold]
    fn list<E: de::Error>(self) -> Result<(), E> {
        Err(E::custom("a list in what serde buffers"))
    }
}

/// Kind of value that a visitor reads: a type with named fields, a type that is known, or any value.
const NAMED: u8 = 0;
const KNOWN: u8 = 1;
const ANY: u8 = 2;

/// Declares methods that pass on a visitor: `$visitor` wraps it, with the note, if there can be values inside.
macro_rules! pass_on {
    ($visitor:expr; $($method:ident($($name:ident: $type:ty),*))*) => {
        $(
            #[inline]
            fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Self::Error> {
                self.0.$method($($name,)* $visitor(visitor, self.1))
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>, N: Note> Deserializer<'de> for ByName<D, N> {
    type Error = D::Error;

    pass_on! { Inside::<_, _, NAMED>; deserialize_struct(name: &'static str, fields: &'static [&'static str]) }

    pass_on! { Inside::<_, _, ANY>; deserialize_any() }

    pass_on! { Inside::<_, _, KNOWN>;
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_option()
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    pass_on! { plain;
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_str()
        deserialize_string()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_identifier()
        deserialize_ignored_any()
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Returns a visitor of a value that has none inside.
#[inline]
fn plain<V, N>(visitor: V, _note: N) -> V {
    visitor
}

/// Visitor that reads the values inside by name.
struct Inside<V, N, const READS: u8>(V, N);

/// Declares the methods of a visitor that have no values inside.
macro_rules! scalars {
    ($($method:ident: $type:ty,)*) => {
        $(
            #[inline]
            fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
                self.0.$method(value)
            }
        )*
    };
}

impl<'de, V: Visitor<'de>, N: Note, const READS: u8> Visitor<'de> for Inside<V, N, READS> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    scalars! {
        visit_bool: bool,
        visit_i8: i8,
        visit_i16: i16,
        visit_i32: i32,
        visit_i64: i64,
        visit_i128: i128,
        visit_u8: u8,
        visit_u16: u16,
        visit_u32: u32,
        visit_u64: u64,
        visit_u128: u128,
        visit_f32: f32,
        visit_f64: f64,
        visit_char: char,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
        visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8],
        visit_byte_buf: Vec<u8>,
    }

    #[inline]
    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    #[inline]
    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(ByName(deserializer, self.1))
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(ByName(deserializer, self.1))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        if READS == NAMED {
            return Err(de::Error::invalid_type(Unexpected::Seq, &self));
        }
        if READS == ANY {
            self.1.list()?;
        }
        self.0.visit_seq(ByName(list, self.1))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(ByName(map, self.1))
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(ByName(variant, self.1))
    }
}

impl<'de, S: DeserializeSeed<'de>, N: Note> DeserializeSeed<'de> for ByName<S, N> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(ByName(deserializer, self.1))
    }
}

impl<'de, A: SeqAccess<'de>, N: Note> SeqAccess<'de> for ByName<A, N> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(ByName(seed, self.1))
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>, N: Note> MapAccess<'de> for ByName<A, N> {
    type Error = A::Error;

    // A key of JSON is a string: there is nothing inside.
    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(ByName(seed, self.1))
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>, N: Note> EnumAccess<'de> for ByName<A, N> {
    type Error = A::Error;
    type Variant = ByName<A::Variant, N>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, content) = self.0.variant_seed(seed)?;
        Ok((name, ByName(content, self.1)))
    }
}

impl<'de, A: VariantAccess<'de>, N: Note> VariantAccess<'de> for ByName<A, N> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(ByName(seed, self.1))
    }

    pass_on! { Inside::<_, _, KNOWN>; tuple_variant(len: usize) }
    pass_on! { Inside::<_, _, NAMED>; struct_variant(fields: &'static [&'static str]) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::super::decode::{from_str, from_value};

    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: i64,
        #[serde(default)]
        y: i64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair(i64, Point);

    #[derive(Debug, PartialEq, Deserialize)]
    struct Alone(Point);

    #[derive(Debug, PartialEq, Deserialize)]
    enum Shape {
        Nothing,
        Dot(Point),
        Line(Point, Point),
        Circle { centre: Point, radius: i64 },
    }

    /// Reads a value from text and from a tree, which have to agree.
    fn read<T: for<'a> Deserialize<'a>>(value: &Value) -> Result<T, String> {
        let text = from_str(&value.to_string()).map_err(|error| error.to_string());
        let tree = from_value::<T>(value);
        assert_eq!(text.is_ok(), tree.is_ok(), "{value}");
        text
    }

    #[test]
    fn a_list_is_not_taken_for_a_struct_at_any_depth() {
        let list = || json!([1, 2]);
        let refusals = [
            read::<Point>(&list()).expect_err("a struct"),
            read::<Alone>(&list()).expect_err("inside a newtype"),
            read::<Option<Point>>(&list()).expect_err("inside an option"),
            read::<Vec<Point>>(&json!([list()])).expect_err("inside a list"),
            read::<BTreeMap<String, Point>>(&json!({ "a": list() })).expect_err("inside a map"),
            read::<Pair>(&json!([1, list()])).expect_err("inside a tuple struct"),
            read::<(i64, Point)>(&json!([1, list()])).expect_err("inside a tuple"),
            read::<Shape>(&json!({ "Dot": list() })).expect_err("inside a variant"),
            read::<Shape>(&json!({ "Line": [list(), list()] })).expect_err("inside a tuple variant"),
            read::<Shape>(&json!({ "Circle": { "centre": list(), "radius": 1 } })).expect_err("in a field"),
            read::<Shape>(&json!({ "Circle": [{ "x": 1 }, 1] })).expect_err("named fields of a variant"),
        ];
        for refusal in refusals {
            assert!(refusal.starts_with("invalid type: sequence, expected struct"), "{refusal}");
        }
    }

    #[test]
    fn lists_tuples_and_enums_are_read_as_ever() {
        let point = || json!({ "x": 1, "y": 2 });
        let expected = || Point { x: 1, y: 2 };
        assert_eq!(read(&json!({ "x": 1 })), Ok(Point { x: 1, y: 0 }));
        assert_eq!(read(&point()), Ok(Alone(expected())));
        assert_eq!(read(&json!([7, point()])), Ok(Pair(7, expected())));
        assert_eq!(read(&json!([point(), null])), Ok(vec![Some(expected()), None]));
        assert_eq!(read(&json!("Nothing")), Ok(Shape::Nothing));
        assert_eq!(read(&json!({ "Dot": point() })), Ok(Shape::Dot(expected())));
        assert_eq!(read(&json!({ "Line": [point(), point()] })), Ok(Shape::Line(expected(), expected())));
        let circle = Shape::Circle { centre: expected(), radius: 3 };
        assert_eq!(read(&json!({ "Circle": { "centre": point(), "radius": 3 } })), Ok(circle));
        assert_eq!(read(&json!([true, "é", 1.5, -3])), Ok((true, "é".to_owned(), 1.5, -3)));
        assert_eq!(read::<Value>(&json!([point(), [[]]])), Ok(json!([point(), [[]]])));
    }

    #[test]
    fn text_is_borrowed_and_kept_as_ever() {
        #[derive(Deserialize)]
        struct Borrowed<'a> {
            name: &'a str,
            #[serde(borrow)]
            rest: &'a RawValue,
        }
        let text = r#"{"name":"a","rest":[ 1,{"x" :2}]}"#;
        let Borrowed { name, rest } = from_str(text).expect("both are there");
        assert_eq!((name, rest.get()), ("a", r#"[ 1,{"x" :2}]"#));
        assert!(text.as_bytes().as_ptr_range().contains(&rest.get().as_ptr()), "it is not a copy");
    }

    #[test]
    fn nothing_may_follow_a_value() {
        assert!(from_str::<Point>(r#"{"x":1} {}"#).is_err());
        assert!(from_str::<Point>(r#"{"x":1} "#).is_ok());
    }
}

//! A deserializer that notes where a type is read as a struct, and with which fields.

use std::cell::RefCell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A struct that was read.
#[derive(Debug, Clone)]
pub(super) struct Struct {
    pub(super) name: &'static str,
    /// Its fields, in the order in which a list would have them.
    pub(super) fields: &'static [&'static str],
    /// The way to it from the root: the numbers of entries and elements.
    pub(super) path: Vec<usize>,
}

pub(super) type Structs = RefCell<Vec<Struct>>;

/// Something through which values are read, at a place of the text.
pub(super) struct Spy<'s, T> {
    inner: T,
    path: Vec<usize>,
    structs: &'s Structs,
}

impl<'s, T> Spy<'s, T> {
    pub(super) fn new(inner: T, structs: &'s Structs) -> Self {
        Self { inner, path: Vec::new(), structs }
    }

    /// The same, around another thing.
    fn around<U>(&self, inner: U) -> Spy<'s, U> {
        Spy { inner, path: self.path.clone(), structs: self.structs }
    }

    /// The same, one step further in.
    fn inside<U>(&self, inner: U, number: usize) -> Spy<'s, U> {
        let mut spy = self.around(inner);
        spy.path.push(number);
        spy
    }

    fn split(self) -> (T, Spy<'s, ()>) {
        (self.inner, Spy { inner: (), path: self.path, structs: self.structs })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Spy<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.structs.borrow_mut().push(Struct { name, fields, path: self.path.clone() });
        let (inner, spy) = self.split();
        inner.deserialize_struct(name, fields, spy.around(visitor))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, spy) = self.split();
        inner.deserialize_any(spy.around(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, spy) = self.split();
        inner.deserialize_option(spy.around(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, spy) = self.split();
        inner.deserialize_newtype_struct(name, spy.around(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let (inner, spy) = self.split();
        inner.deserialize_enum(name, variants, spy.around(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Spy<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    scalars! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let (visitor, spy) = self.split();
        visitor.visit_some(spy.around(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let (visitor, spy) = self.split();
        visitor.visit_newtype_struct(spy.around(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        let (visitor, spy) = self.split();
        visitor.visit_seq(spy.around((list, 0)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let (visitor, spy) = self.split();
        visitor.visit_map(spy.around((map, 0)))
    }

    // Variants on the wire are bare names.
    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(variant)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Spy<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let (seed, spy) = self.split();
        seed.deserialize(spy.around(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Spy<'_, (A, usize)> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.inside(seed, self.inner.1);
        self.inner.1 += 1;
        self.inner.0.next_element_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Spy<'_, (A, usize)> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.inside(seed, self.inner.1);
        self.inner.1 += 1;
        self.inner.0.next_value_seed(seed)
    }
}

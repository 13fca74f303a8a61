//! Typed values from string pairs: prompt arguments and URI variables are strings on the wire, but a handler
//! may well want a number.

use std::fmt;

use roundtrip_core::wire::{clip, clip_error};
use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};

/// Parses named strings into a struct. The error names the value that did not fit.
pub(crate) fn parse<T: DeserializeOwned>(pairs: &[(&str, &str)]) -> Result<T, String> {
    let entries = pairs.iter().map(|&(name, value)| (name, Text { name, value }));
    T::deserialize(MapDeserializer::<_, Error>::new(entries)).map_err(|error| clip_error(&error))
}

#[derive(Debug)]
struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self(message.to_string())
    }
}

/// Deserializer of one string into the type of its field.
struct Text<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'de> IntoDeserializer<'de, Error> for Text<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl Text<'_> {
    fn at(&self, error: &Error) -> Error {
        Error(format!("{}: {}", clip(self.name), clip_error(error)))
    }

    fn number<N: std::str::FromStr>(&self, wanted: &str) -> Result<N, Error> {
        self.value
            .parse()
            .map_err(|_| Error(format!("{}: `{}` is not {wanted}", clip(self.name), clip(self.value))))
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $wanted:literal,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let value = self.number($wanted)?;
            visitor.$visit(value).map_err(|error: Error| self.at(&error))
        })*
    };
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    parsed! {
        deserialize_bool visit_bool "true or false",
        deserialize_u8 visit_u8 "a number from 0 to 255",
        deserialize_u16 visit_u16 "a number from 0 to 65535",
        deserialize_u32 visit_u32 "a whole number of 0 or more",
        deserialize_u64 visit_u64 "a whole number of 0 or more",
        deserialize_i8 visit_i8 "a number from -128 to 127",
        deserialize_i16 visit_i16 "a number from -32768 to 32767",
        deserialize_i32 visit_i32 "a whole number",
        deserialize_i64 visit_i64 "a whole number",
        deserialize_f32 visit_f32 "a number",
        deserialize_f64 visit_f64 "a number",
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.value).map_err(|error: Error| self.at(&error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.value.into_deserializer()).map_err(|error: Error| self.at(&error))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wanted {
        name: String,
        count: u8,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Big,
    }

    #[test]
    fn strings_become_what_the_fields_want() {
        let wanted = parse(&[("name", "a"), ("count", "7"), ("kind", "big"), ("more", "ignored")]);
        assert_eq!(wanted, Ok(Wanted { name: "a".into(), count: 7, kind: Some(Kind::Big) }));
        assert_eq!(
            parse(&[("name", "a"), ("count", "0")]),
            Ok(Wanted { name: "a".into(), count: 0, kind: None })
        );
    }

    #[test]
    fn the_error_names_the_value() {
        let refused = |pairs| parse::<Wanted>(pairs).expect_err("refused");
        assert_eq!(refused(&[("name", "a"), ("count", "x")]), "count: `x` is not a number from 0 to 255");
        assert_eq!(refused(&[("name", "a")]), "missing field `count`");
        assert!(
            refused(&[("name", "a"), ("count", "1"), ("kind", "huge")]).starts_with("kind: unknown variant")
        );
    }
}

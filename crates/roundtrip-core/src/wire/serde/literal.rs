//! Members that have only one possible string.

/// Declares zero-sized types that stand for one string each.
macro_rules! literals {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub struct $name;

            impl ::serde::Serialize for $name {
                fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str($text)
                }
            }

            impl<'de> ::serde::Deserialize<'de> for $name {
                fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let $crate::wire::BorrowedStr(text) = ::serde::Deserialize::deserialize(deserializer)?;
                    if text == $text {
                        return Ok(Self);
                    }
                    let unexpected = ::serde::de::Unexpected::Str(&text);
                    Err(::serde::de::Error::invalid_value(unexpected, &concat!("\"", $text, "\"")))
                }
            }
        )*
    };
}

pub(crate) use literals;

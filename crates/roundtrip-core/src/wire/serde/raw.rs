//! JSON values kept as text.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::decode::from_str;

/// A JSON value kept as text: passed on byte for byte, and parsed only where it is needed.
#[derive(Clone)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// Serialises any value.
    ///
    /// # Errors
    /// Fails if the value does not serialise (a map with keys that are not strings, for one).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        to_raw_value(value).map(Self)
    }

    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Parses it into a type.
    ///
    /// # Errors
    /// Fails if the text does not fit the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        from_str(self.get())
    }

    /// Parses it into a generic value.
    pub fn to_value(&self) -> Value {
        // The text was JSON when it came in; only nesting beyond serde_json's limit can fail here.
        self.to().unwrap_or(Value::Null)
    }
}

impl From<Value> for Raw {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&Value> for Raw {
    #[expect(
        clippy::expect_used,
        reason = "a Value's keys are strings, which is all that serialising can trip over"
    )]
    fn from(value: &Value) -> Self {
        Self(to_raw_value(value).expect("a JSON value serialises"))
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<&RawValue> for Raw {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl AsRef<RawValue> for Raw {
    fn as_ref(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for Raw {
    /// Compares as JSON values, whatever the spelling.
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get() || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

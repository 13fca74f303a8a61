//! `requestedSchema` of a form, serialised once for all questions that use it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{ElicitSchema, Raw, json};

/// A form's schema, shared by all questions with the same form and serialised at most once.
#[derive(Clone, Default)]
pub struct RequestedSchema {
    schema: Arc<ElicitSchema>,
    /// Its JSON, as it came or as it has been serialised.
    json: OnceLock<Arc<Raw>>,
}

impl RequestedSchema {
    /// Serialises the schema once, for every time it is sent.
    ///
    /// # Errors
    /// Fails if the schema does not serialise.
    pub(crate) fn written(schema: ElicitSchema) -> Result<(Self, Arc<Raw>), serde_json::Error> {
        let json = Arc::new(Raw::of(&schema)?);
        Ok((Self { schema: Arc::new(schema), json: OnceLock::from(Arc::clone(&json)) }, json))
    }

    /// Returns the schema as JSON: as the server sent it, with keywords that have no field here (`pattern`).
    pub fn raw(&self) -> &Raw {
        // A schema that does not serialise cannot be sent either; none that was received is such.
        self.json.get_or_init(|| Arc::new(Raw::of(&*self.schema).unwrap_or_else(|_| json!({}).into())))
    }
}

impl From<ElicitSchema> for RequestedSchema {
    fn from(schema: ElicitSchema) -> Self {
        Self { schema: Arc::new(schema), json: OnceLock::new() }
    }
}

impl Deref for RequestedSchema {
    type Target = ElicitSchema;

    fn deref(&self) -> &ElicitSchema {
        &self.schema
    }
}

impl PartialEq for RequestedSchema {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}

impl fmt::Debug for RequestedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.schema.fmt(f)
    }
}

impl Serialize for RequestedSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.json.get() {
            Some(json) => json.serialize(serializer),
            None => self.schema.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RequestedSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Raw::deserialize(deserializer)?;
        let schema = json::from_str(json.get()).map_err(de::Error::custom)?;
        Ok(Self { schema: Arc::new(schema), json: OnceLock::from(Arc::new(json)) })
    }
}

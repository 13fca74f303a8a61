//! `requestedSchema` of a form, serialised once for all questions that use it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{ElicitSchema, Raw};

/// A form's schema, shared by all questions with the same form and serialised at most once.
#[derive(Clone, Default)]
pub struct RequestedSchema {
    schema: Arc<ElicitSchema>,
    /// Its JSON, if it has been serialised.
    json: Option<Arc<Raw>>,
}

impl RequestedSchema {
    /// Serialises the schema once, for every time it is sent.
    ///
    /// # Errors
    /// Fails if the schema does not serialise.
    pub(crate) fn written(schema: ElicitSchema) -> Result<(Self, Arc<Raw>), serde_json::Error> {
        let json = Arc::new(Raw::of(&schema)?);
        Ok((Self { schema: Arc::new(schema), json: Some(Arc::clone(&json)) }, json))
    }
}

impl From<ElicitSchema> for RequestedSchema {
    fn from(schema: ElicitSchema) -> Self {
        Self { schema: Arc::new(schema), json: None }
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
        match &self.json {
            Some(json) => json.serialize(serializer),
            None => self.schema.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RequestedSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ElicitSchema::deserialize(deserializer).map(Self::from)
    }
}

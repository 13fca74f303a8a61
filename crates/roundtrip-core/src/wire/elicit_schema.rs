//! The schema of a form: a flat object of simple fields (client, "Elicitation", "Requested Schema").

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::elicit_choice;
use super::serde::literal::literals;
use super::serde::tagged::{self, Tagged};
use super::serde::{members, null, number};
use super::{
    LegacyTitledEnumSchema, TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema,
    UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
};

literals! {
    /// The `type` of a form's schema.
    ObjectType = "object";
}

/// The schema of a form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitSchema {
    /// The dialect of JSON Schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Its `type`: `object`.
    #[serde(rename = "type")]
    pub kind: ObjectType,
    /// The fields by name, in the order people shall see them.
    #[serde(serialize_with = "write_properties", deserialize_with = "read_properties")]
    pub properties: Vec<(String, PrimitiveSchemaDefinition)>,
    /// The fields that must be filled.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
}

impl ElicitSchema {
    /// Returns the field of that name.
    pub fn property(&self, name: &str) -> Option<&PrimitiveSchemaDefinition> {
        self.properties.iter().find(|(property, _)| property == name).map(|(_, schema)| schema)
    }
}

type Properties = Vec<(String, PrimitiveSchemaDefinition)>;

fn write_properties<S: Serializer>(properties: &Properties, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(properties.iter().map(|(name, schema)| (name, schema)))
}

fn read_properties<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Properties, D::Error> {
    members::read_distinct(deserializer, "schemas by property name", "properties")
}

/// The schema of one field, told apart by `type` and by how its choices are written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum PrimitiveSchemaDefinition {
    /// Text.
    #[serde(rename = "string")]
    String(StringSchema),
    /// A number.
    #[serde(rename = "number")]
    Number(NumberSchema),
    /// A whole number.
    #[serde(rename = "integer")]
    Integer(NumberSchema),
    /// A boolean.
    #[serde(rename = "boolean")]
    Boolean(BooleanSchema),
    /// One of several values.
    #[serde(rename = "string")]
    UntitledSingleSelect(UntitledSingleSelectEnumSchema),
    /// One of several values that have titles.
    #[serde(rename = "string")]
    TitledSingleSelect(TitledSingleSelectEnumSchema),
    /// Some of several values.
    #[serde(rename = "array")]
    UntitledMultiSelect(UntitledMultiSelectEnumSchema),
    /// Some of several values that have titles.
    #[serde(rename = "array")]
    TitledMultiSelect(TitledMultiSelectEnumSchema),
    /// One of several values, with titles in a list beside them.
    #[serde(rename = "string")]
    LegacyTitled(LegacyTitledEnumSchema),
}

impl Tagged for PrimitiveSchemaDefinition {
    const TAG: &'static str = "type";
    const EXPECTING: &'static str = "the schema of a form's field";

    fn read<'de, D: Deserializer<'de>>(tag: Option<&str>, rest: D) -> Result<Self, D::Error> {
        match tag {
            Some("string") => elicit_choice::read_string(rest),
            Some("number") => NumberSchema::deserialize(rest).map(Self::Number),
            Some("integer") => NumberSchema::deserialize(rest).map(Self::Integer),
            Some("boolean") => BooleanSchema::deserialize(rest).map(Self::Boolean),
            Some("array") => elicit_choice::read_array(rest),
            Some(other) => {
                Err(de::Error::unknown_variant(other, &["string", "number", "integer", "boolean", "array"]))
            }
            None => Err(de::Error::missing_field(Self::TAG)),
        }
    }
}

impl<'de> Deserialize<'de> for PrimitiveSchemaDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// Schema of a text field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StringSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Least number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Greatest number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Format of the text: `email`, `uri`, `date` or `date-time`; others are passed on unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Schema of a number field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least value.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub minimum: Option<f64>,
    /// The greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub maximum: Option<f64>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option")]
    pub default: Option<f64>,
}

/// Schema of a boolean field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BooleanSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

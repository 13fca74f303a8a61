//! The five ways a form's schema writes a choice.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::serde::literal::literals;
use super::{PrimitiveSchemaDefinition, StringSchema};

literals! {
    /// The `type` of each choice in a list of several.
    StringType = "string";
}

/// One of several values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UntitledSingleSelectEnumSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// One of several values that have titles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledSingleSelectEnumSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    pub one_of: Vec<TitledValue>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Some of several values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UntitledMultiSelectEnumSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Least number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Greatest number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: UntitledItems,
    /// Default selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// Some of several values that have titles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledMultiSelectEnumSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Least number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Greatest number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: TitledItems,
    /// Default selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// One of several values, with titles in a list beside them. Superseded by [`TitledSingleSelectEnumSchema`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LegacyTitledEnumSchema {
    /// The label people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Their titles, in the same order.
    pub enum_names: Vec<String>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A value and its title.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledValue {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// The title people see.
    pub title: String,
}

/// The values to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UntitledItems {
    /// The `type` of each value: `string`.
    #[serde(rename = "type")]
    pub kind: StringType,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
}

/// The values to choose from, with titles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledItems {
    /// The values.
    pub any_of: Vec<TitledValue>,
}

/// Reads a property of type `string`: text, or a choice written in one of three ways.
pub(crate) fn read_string<'de, D: Deserializer<'de>>(rest: D) -> Result<PrimitiveSchemaDefinition, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        title: Option<String>,
        description: Option<String>,
        min_length: Option<u64>,
        max_length: Option<u64>,
        format: Option<String>,
        #[serde(rename = "enum")]
        values: Option<Vec<String>>,
        enum_names: Option<Vec<String>>,
        one_of: Option<Vec<TitledValue>>,
        default: Option<String>,
    }
    let Any { title, description, min_length, max_length, format, values, enum_names, one_of, default } =
        Any::deserialize(rest)?;
    Ok(match (values, enum_names, one_of) {
        (None, _, None) => PrimitiveSchemaDefinition::String(StringSchema {
            title,
            description,
            min_length,
            max_length,
            format,
            default,
        }),
        (None, _, Some(one_of)) => {
            PrimitiveSchemaDefinition::TitledSingleSelect(TitledSingleSelectEnumSchema {
                title,
                description,
                one_of,
                default,
            })
        }
        (Some(values), None, _) => {
            PrimitiveSchemaDefinition::UntitledSingleSelect(UntitledSingleSelectEnumSchema {
                title,
                description,
                values,
                default,
            })
        }
        (Some(values), Some(enum_names), _) => {
            PrimitiveSchemaDefinition::LegacyTitled(LegacyTitledEnumSchema {
                title,
                description,
                values,
                enum_names,
                default,
            })
        }
    })
}

/// Reads a property of type `array`: a choice of several, written in one of two ways.
pub(crate) fn read_array<'de, D: Deserializer<'de>>(rest: D) -> Result<PrimitiveSchemaDefinition, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        title: Option<String>,
        description: Option<String>,
        min_items: Option<u64>,
        max_items: Option<u64>,
        items: Items,
        default: Option<Vec<String>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Items {
        #[serde(rename = "type")]
        kind: Option<StringType>,
        #[serde(rename = "enum")]
        values: Option<Vec<String>>,
        any_of: Option<Vec<TitledValue>>,
    }
    let Any { title, description, min_items, max_items, items, default } = Any::deserialize(rest)?;
    match (items.kind, items.values, items.any_of) {
        (_, None, Some(any_of)) => {
            Ok(PrimitiveSchemaDefinition::TitledMultiSelect(TitledMultiSelectEnumSchema {
                title,
                description,
                min_items,
                max_items,
                items: TitledItems { any_of },
                default,
            }))
        }
        // Some servers leave the `type` out: a choice is a string (FastMCP).
        (kind, Some(values), None) => {
            Ok(PrimitiveSchemaDefinition::UntitledMultiSelect(UntitledMultiSelectEnumSchema {
                title,
                description,
                min_items,
                max_items,
                items: UntitledItems { kind: kind.unwrap_or_default(), values },
                default,
            }))
        }
        _ => Err(de::Error::custom("the `items` of a choice need either `anyOf` or `enum`")),
    }
}

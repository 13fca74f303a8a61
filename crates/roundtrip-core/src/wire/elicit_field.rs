//! The parts of a form's field that people see, whatever its type.

use super::{PrimitiveSchemaDefinition, TitledValue};

impl PrimitiveSchemaDefinition {
    /// Returns the label people see.
    pub fn title(&self) -> Option<&str> {
        self.texts().0
    }

    /// Returns the description for people.
    pub fn description(&self) -> Option<&str> {
        self.texts().1
    }

    /// Returns the values to choose from, each with the title people see: the value itself where it has none. A field that
    /// is no choice has none.
    pub fn choices(&self) -> Vec<(&str, &str)> {
        match self {
            Self::UntitledSingleSelect(field) => untitled(&field.values),
            Self::UntitledMultiSelect(field) => untitled(&field.items.values),
            Self::TitledSingleSelect(field) => titled(&field.one_of),
            Self::TitledMultiSelect(field) => titled(&field.items.any_of),
            Self::LegacyTitled(field) => {
                let titles = field.enum_names.iter().map(Some).chain(std::iter::repeat(None));
                field
                    .values
                    .iter()
                    .zip(titles)
                    .map(|(value, title)| (&**value, &**title.unwrap_or(value)))
                    .collect()
            }
            Self::String(_) | Self::Number(_) | Self::Integer(_) | Self::Boolean(_) => Vec::new(),
        }
    }

    /// Returns whether several values can be chosen.
    pub fn is_multi_select(&self) -> bool {
        matches!(self, Self::UntitledMultiSelect(_) | Self::TitledMultiSelect(_))
    }

    fn texts(&self) -> (Option<&str>, Option<&str>) {
        let (title, description) = match self {
            Self::String(field) => (&field.title, &field.description),
            Self::Number(field) | Self::Integer(field) => (&field.title, &field.description),
            Self::Boolean(field) => (&field.title, &field.description),
            Self::UntitledSingleSelect(field) => (&field.title, &field.description),
            Self::TitledSingleSelect(field) => (&field.title, &field.description),
            Self::UntitledMultiSelect(field) => (&field.title, &field.description),
            Self::TitledMultiSelect(field) => (&field.title, &field.description),
            Self::LegacyTitled(field) => (&field.title, &field.description),
        };
        (title.as_deref(), description.as_deref())
    }
}

fn untitled(values: &[String]) -> Vec<(&str, &str)> {
    values.iter().map(|value| (&**value, &**value)).collect()
}

fn titled(values: &[TitledValue]) -> Vec<(&str, &str)> {
    values.iter().map(|TitledValue { value, title }| (&**value, &**title)).collect()
}

//! One line about a field: its description, range and format.

use roundtrip::wire::PrimitiveSchemaDefinition as Field;

/// Returns the help for a field; `None` where there is nothing to say.
pub(super) fn hint(field: &Field, is_required: bool) -> Option<String> {
    let mut parts: Vec<String> = field.description().map(str::to_owned).into_iter().collect();
    match field {
        Field::Number(number) | Field::Integer(number) => {
            parts.extend(range("", number.minimum, number.maximum));
        }
        Field::String(text) => {
            let length = |bound: Option<u64>| bound.map(|bound| bound as f64);
            parts.extend(range(" characters", length(text.min_length), length(text.max_length)));
            parts.extend(text.format.clone());
        }
        _ => {}
    }
    if !is_required && !matches!(field, Field::Boolean(_)) {
        parts.push("optional".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn range(of: &str, from: Option<f64>, to: Option<f64>) -> Option<String> {
    match (from, to) {
        (Some(from), Some(to)) => Some(format!("{from} to {to}{of}")),
        (Some(from), None) => Some(format!("{from} or more{of}")),
        (None, Some(to)) => Some(format!("{to} at most{of}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hint_has_range_and_format() {
        let hint = |schema, required| hint(&serde_json::from_value(schema).unwrap(), required);
        let people = json!({ "type": "integer", "description": "Guests", "minimum": 1, "maximum": 12 });
        assert_eq!(hint(people, true).as_deref(), Some("Guests; 1 to 12"));
        let mail = json!({ "type": "string", "format": "email", "minLength": 3 });
        assert_eq!(hint(mail, false).as_deref(), Some("3 or more characters; email; optional"));
        assert_eq!(hint(json!({ "type": "boolean" }), false), None);
        assert_eq!(hint(json!({ "type": "number", "maximum": 0.5 }), true).as_deref(), Some("0.5 at most"));
    }
}

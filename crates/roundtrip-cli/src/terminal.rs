//! Forms in a terminal: one prompt per field, with its choices, default and range.

use std::error::Error;

use inquire::error::InquireError;
use inquire::validator::{ErrorMessage, Validation};
use inquire::{Confirm, MultiSelect, Select, Text};
use roundtrip::client::{FormAnswer, FormRequest};
use roundtrip::form::check;
use roundtrip::wire::{ElicitSchema, PrimitiveSchemaDefinition as Field};
use serde_json::{Map, Value};

use crate::printable::printable;

/// Asks a form in the terminal. Escape declines it.
pub(crate) async fn form(form: FormRequest) -> Result<FormAnswer, Box<dyn Error + Send + Sync>> {
    // Prompts block, so they get a thread of their own.
    let asked = form.clone();
    let filled = tokio::task::spawn_blocking(move || fill(&asked)).await?;
    match filled {
        Ok(content) => Ok(form.accept(content)?),
        Err(InquireError::OperationCanceled) => Ok(form.decline()),
        Err(InquireError::OperationInterrupted) => Ok(form.cancel()),
        Err(error) => Err(error.into()),
    }
}

fn fill(form: &FormRequest) -> Result<Map<String, Value>, InquireError> {
    anstream::println!("{}", printable(&form.message));
    let mut content = Map::new();
    for (name, field) in &form.schema.properties {
        let required = form.schema.required.contains(name);
        if let Some(value) = ask(&form.schema, name, field, required)? {
            content.insert(name.clone(), value);
        }
    }
    Ok(content)
}

/// Asks one field; `None` if it was left out.
fn ask(
    schema: &ElicitSchema,
    name: &str,
    field: &Field,
    required: bool,
) -> Result<Option<Value>, InquireError> {
    let label = label(name, field);
    let value = match field {
        Field::Boolean(boolean) => {
            let mut prompt = Confirm::new(&label);
            prompt.default = boolean.default;
            prompt.prompt()?.into()
        }
        Field::String(_) | Field::Number(_) | Field::Integer(_) => {
            let text = typed(schema, name, field, required, &label)?;
            if text.is_empty() && !required {
                return Ok(None);
            }
            parse(field, &text)
        }
        choices => {
            let options = options(choices);
            let titles: Vec<&str> = options.iter().map(|(_, title)| title.as_str()).collect();
            let value = |index: usize| Value::from(options[index].0.clone());
            if choices.is_multi_select() {
                let picked = MultiSelect::new(&label, titles).raw_prompt()?;
                picked.into_iter().map(|option| value(option.index)).collect()
            } else {
                value(Select::new(&label, titles).raw_prompt()?.index)
            }
        }
    };
    Ok(Some(value))
}

/// Asks for text, checked against the field as it is typed.
fn typed(
    schema: &ElicitSchema,
    name: &str,
    field: &Field,
    required: bool,
    label: &str,
) -> Result<String, InquireError> {
    let only = ElicitSchema {
        properties: vec![(name.to_owned(), field.clone())],
        required: schema.required.iter().filter(|wanted| *wanted == name).cloned().collect(),
        ..ElicitSchema::default()
    };
    let (key, kind) = (name.to_owned(), field.clone());
    let validator = move |text: &str| {
        if text.is_empty() && !required {
            return Ok(Validation::Valid);
        }
        let content = Map::from_iter([(key.clone(), parse(&kind, text))]);
        Ok(match check(&only, &content) {
            Ok(_) => Validation::Valid,
            Err(problems) => Validation::Invalid(ErrorMessage::Custom(printable(&problems.to_string()))),
        })
    };
    Text::new(label).with_validator(validator).prompt()
}

/// Parses typed text as the field's type. Text that is not a number stays text, for the check to refuse.
fn parse(field: &Field, text: &str) -> Value {
    match field {
        Field::Number(_) | Field::Integer(_) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        _ => text.into(),
    }
}

fn label(name: &str, field: &Field) -> String {
    printable(&match (field.title(), field.description()) {
        (Some(title), Some(description)) => format!("{title} ({description})"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => name.to_owned(),
    })
}

/// Returns the choices of a field: the value sent, and the text shown.
fn options(field: &Field) -> Vec<(String, String)> {
    field.choices().into_iter().map(|(value, title)| (value.to_owned(), printable(title))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Field, label, options};

    fn field(schema: serde_json::Value) -> Field {
        serde_json::from_value(schema).unwrap()
    }

    /// E5: names, titles, descriptions and choices of a form are shown, and not obeyed; what is sent stays as it was.
    #[test]
    fn what_a_form_shows_is_printable() {
        let plain = field(json!({ "type": "string" }));
        assert_eq!(label("a\u{1b}[2J", &plain), "a\\u{1b}[2J");
        let titled = field(json!({ "type": "string", "title": "T\n", "description": "\u{202e}D" }));
        assert_eq!(label("a", &titled), "T\\n (\\u{202e}D)");
        let choice = field(json!({ "type": "string", "enum": ["x\u{7}", "y"] }));
        assert_eq!(options(&choice)[0], ("x\u{7}".to_owned(), "x\\u{7}".to_owned()));
        let choice = field(json!({ "type": "string", "oneOf": [{ "const": "x", "title": "\u{9b}1m" }] }));
        assert_eq!(options(&choice), [("x".to_owned(), "\\u{9b}1m".to_owned())]);
    }
}

//! Questions in a terminal: one prompt per field of a form, with its choices, default and range.

use std::error::Error;

use inquire::error::InquireError;
use inquire::ui::{RenderConfig, Styled};
use inquire::validator::{ErrorMessage, StringValidator, Validation};
use inquire::{Confirm, MultiSelect, Select, Text, set_global_render_config};
use roundtrip::client::{Answer, PendingQuestion};
use roundtrip::form::check;
use roundtrip::wire::{ElicitSchema, PrimitiveSchemaDefinition as Field};
use serde_json::{Map, Value};

use crate::printable::printable;

/// Asks a form in the terminal. Escape declines it.
///
/// # Errors
/// If it is interrupted, or there is no asking in this terminal.
pub(crate) async fn answer(question: &PendingQuestion<'_>) -> Result<Answer, Box<dyn Error>> {
    let schema = question.schema().ok_or("there is no way to ask this in a terminal")?.clone();
    let (message, fields) = (printable(question.message().unwrap_or_default()), schema.clone());
    // Prompts block, so they get a thread of their own.
    match tokio::task::spawn_blocking(move || fill(&message, &fields)).await? {
        Ok(content) => Ok(Answer::fill(&schema, content)?),
        Err(InquireError::OperationCanceled) => Ok(Answer::decline()),
        Err(InquireError::OperationInterrupted) => Err("interrupted".into()),
        Err(error) => Err(error.into()),
    }
}

/// Asks all fields. The message of a form with a single one is its prompt.
fn fill(message: &str, schema: &ElicitSchema) -> Result<Map<String, Value>, InquireError> {
    set_global_render_config(
        RenderConfig::default().with_canceled_prompt_indicator(Styled::new("<declined>")),
    );
    let single = schema.properties.len() == 1;
    if !single {
        anstream::println!("{message}");
    }
    let mut content = Map::new();
    for (name, field) in &schema.properties {
        let label = label(name, field);
        let prompt = if single { (message, Some(label.as_str())) } else { (label.as_str(), None) };
        if let Some(value) = ask(schema, name, field, prompt)? {
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
    (prompt, help): (&str, Option<&str>),
) -> Result<Option<Value>, InquireError> {
    let value = match field {
        Field::Boolean(boolean) => {
            let mut confirm = Confirm::new(prompt);
            (confirm.default, confirm.help_message) = (boolean.default, help);
            confirm.prompt()?.into()
        }
        Field::String(_) | Field::Number(_) | Field::Integer(_) => {
            let required = schema.required.iter().any(|wanted| wanted == name);
            let mut text = Text::new(prompt).with_validator(validator(schema, name, field, required));
            text.help_message = help;
            let text = text.prompt()?;
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
                let picked = MultiSelect::new(prompt, titles).raw_prompt()?;
                picked.into_iter().map(|option| value(option.index)).collect()
            } else {
                value(Select::new(prompt, titles).raw_prompt()?.index)
            }
        }
    };
    Ok(Some(value))
}

/// Returns the check of text against the field, as it is typed.
fn validator(
    schema: &ElicitSchema,
    name: &str,
    field: &Field,
    required: bool,
) -> impl StringValidator + 'static {
    let only = ElicitSchema {
        properties: vec![(name.to_owned(), field.clone())],
        required: schema.required.iter().filter(|wanted| *wanted == name).cloned().collect(),
        ..ElicitSchema::default()
    };
    let (key, kind) = (name.to_owned(), field.clone());
    move |text: &str| {
        if text.is_empty() && !required {
            return Ok(Validation::Valid);
        }
        let content = Map::from_iter([(key.clone(), parse(&kind, text))]);
        Ok(match check(&only, &content) {
            Ok(_) => Validation::Valid,
            Err(problems) => Validation::Invalid(ErrorMessage::Custom(printable(&problems.to_string()))),
        })
    }
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

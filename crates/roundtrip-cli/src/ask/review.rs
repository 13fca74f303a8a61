//! The review of a form before it is sent, with a way to edit, decline and cancel.

use anstyle::Style;
use inquire::Select;
use inquire::error::InquireError;
use roundtrip::wire::{ElicitSchema, PrimitiveSchemaDefinition as Field};
use serde_json::{Map, Value};

use super::form;
use super::terminal::choose;
use crate::output::err;
use crate::printable::printable;
use crate::rows::Screen;

/// Answer of the user to a form.
#[derive(Debug, PartialEq)]
pub(super) enum Reviewed {
    /// Send this.
    Accept(Map<String, Value>),
    /// The user says no.
    Decline,
    /// The user dismisses the question.
    Cancel,
}

#[derive(Clone, Copy)]
enum Next {
    Send,
    Edit,
    GoOn,
    Decline,
    Cancel,
}

/// Asks all fields, and shows the answers until the user sends them or will not.
pub(super) fn ask(schema: &ElicitSchema) -> Result<Reviewed, InquireError> {
    let (mut content, mut asked) = (Map::new(), 0);
    loop {
        let next = match form::fill(schema, &mut content, &mut asked) {
            Ok(()) => review(schema, &content)?,
            Err(InquireError::OperationCanceled) => {
                let options = [("Go on", Next::GoOn), ("Decline", Next::Decline), ("Cancel", Next::Cancel)];
                choose("Not answered. What now?", &options)?
            }
            Err(error) => return Err(error),
        };
        match next {
            Next::Send => return Ok(Reviewed::Accept(content)),
            Next::Decline => return Ok(Reviewed::Decline),
            Next::Cancel => return Ok(Reviewed::Cancel),
            Next::Edit => edit(schema, &mut content)?,
            Next::GoOn => {}
        }
    }
}

/// Shows the answers, and asks what to do with them.
fn review(schema: &ElicitSchema, content: &Map<String, Value>) -> Result<Next, InquireError> {
    let bold = Style::new().bold();
    for (name, field) in &schema.properties {
        let value = content.get(name).map_or_else(|| "-".to_owned(), |value| shown(field, value));
        let lead = format!("  {}: ", form::title(name, field));
        err!("{}", Screen::Err.rows(&lead, &format!("{bold}{value}{bold:#}")));
    }
    let edit = [("Edit", Next::Edit)];
    let mut options = vec![("Send", Next::Send)];
    options.extend(edit.iter().filter(|_| !schema.properties.is_empty()));
    options.extend([("Decline", Next::Decline), ("Cancel", Next::Cancel)]);
    choose("Send this?", &options)
}

/// Asks one field again.
fn edit(schema: &ElicitSchema, content: &mut Map<String, Value>) -> Result<(), InquireError> {
    let titles = schema.properties.iter().map(|(name, field)| form::title(name, field)).collect();
    let picked = match Select::new("Which one?", titles).without_help_message().raw_prompt() {
        Ok(picked) => picked.index,
        Err(InquireError::OperationCanceled) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some((name, _)) = schema.properties.get(picked) else { return Ok(()) };
    match form::edit_field(schema, name, content) {
        Err(InquireError::OperationCanceled) => Ok(()),
        other => other,
    }
}

/// Shows a value by its title.
fn shown(field: &Field, value: &Value) -> String {
    let options = form::options(field);
    let titled = |value: &str| {
        let option = options.iter().find(|(option, _)| option == value);
        option.map_or_else(|| printable(value), |(_, title)| title.clone())
    };
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => titled(text),
        Value::Array(values) => values
            .iter()
            .map(|value| titled(value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

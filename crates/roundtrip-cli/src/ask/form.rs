//! Forms in a terminal: one prompt per field, with its choices, default, range and format.

use std::error::Error;

use inquire::error::{CustomUserError, InquireError};
use inquire::list_option::ListOption;
use inquire::ui::{RenderConfig, Styled};
use inquire::validator::{ErrorMessage, MultiOptionValidator, StringValidator, Validation};
use inquire::{Confirm, MultiSelect, Select, Text, set_global_render_config};
use roundtrip::client::{Answer, PendingQuestion};
use roundtrip::form::{check, fill_defaults};
use roundtrip::wire::{ElicitSchema, PrimitiveSchemaDefinition as Field, json};
use serde_json::{Map, Value};

use super::hint::hint;
use super::terminal;
use crate::output::err;
use crate::printable::printable;
use crate::rows::{MARK, Screen};

/// Columns that a prompt takes beside a choice, a help or an error.
const BESIDE: usize = 8;
/// Choice of a field that is left out.
const LEFT_OUT: &str = "(leave out)";

/// Asks a form in the terminal, without a review. Escape declines it.
///
/// # Errors
/// If it is interrupted, or there is no asking in this terminal.
pub(crate) async fn answer(question: &PendingQuestion<'_>) -> Result<Answer, Box<dyn Error>> {
    let schema = question.schema().ok_or("there is no way to ask this in a terminal")?.clone();
    let (message, fields) = (printable(question.message().unwrap_or_default()), schema.clone());
    // Prompts block, so they get a thread of their own.
    let filled = tokio::select! {
        filled = tokio::task::spawn_blocking(move || fill_in(&message, &fields)) => filled?,
        () = terminal::gone() => Err(InquireError::OperationInterrupted),
    };
    match filled {
        Ok(content) => Ok(Answer::fill(&schema, content)?),
        Err(InquireError::OperationCanceled) => Ok(Answer::decline()),
        Err(error) => Err(error.into()),
    }
}

/// Asks all fields of a form by itself. The message of a form with a single one is its prompt.
fn fill_in(message: &str, schema: &ElicitSchema) -> Result<Map<String, Value>, InquireError> {
    set_global_render_config(
        RenderConfig::default().with_canceled_prompt_indicator(Styled::new("<declined>")),
    );
    let mut content = Map::new();
    match schema.properties.as_slice() {
        [(name, field)] => {
            let help = label(name, field);
            let asking = Asking { schema, name, field, prompt: message, help: Some(help), is_edit: false };
            asking.ask(&mut content)?;
        }
        _ => {
            anstream::println!("{message}");
            fill(schema, &mut content, &mut 0)?;
        }
    }
    Ok(content)
}

/// Asks all fields behind those that have been asked already, and counts them.
pub(super) fn fill(
    schema: &ElicitSchema,
    content: &mut Map<String, Value>,
    asked: &mut usize,
) -> Result<(), InquireError> {
    for (name, _) in schema.properties.iter().skip(*asked) {
        fill_field(schema, name, content)?;
        *asked += 1;
    }
    Ok(())
}

/// Asks one field.
pub(crate) fn fill_field(
    schema: &ElicitSchema,
    name: &str,
    content: &mut Map<String, Value>,
) -> Result<(), InquireError> {
    ask_field(schema, name, content, false)
}

/// Asks one field again, whose value is there to be changed.
pub(super) fn edit_field(
    schema: &ElicitSchema,
    name: &str,
    content: &mut Map<String, Value>,
) -> Result<(), InquireError> {
    ask_field(schema, name, content, true)
}

fn ask_field(
    schema: &ElicitSchema,
    name: &str,
    content: &mut Map<String, Value>,
    is_edit: bool,
) -> Result<(), InquireError> {
    let Some(field) = schema.property(name) else { return Ok(()) };
    let prompt = title(name, field);
    let mut asking = Asking { schema, name, field, prompt: &prompt, help: None, is_edit };
    asking.help = hint(field, !asking.is_optional()).and_then(|hint| help(&hint));
    asking.ask(content)
}

/// Returns the help of a prompt. A text longer than a row is shown before the prompt, row by row.
fn help(hint: &str) -> Option<String> {
    let hint = printable(hint);
    let row = Screen::Err.clipped(&hint, BESIDE);
    if row == hint {
        return Some(hint);
    }
    err!("{}", Screen::Err.rows(MARK, &hint));
    None
}

/// Asks for a value as JSON.
pub(crate) fn json(prompt: &str) -> Result<Value, InquireError> {
    let prompt = Screen::Err.name(&printable(prompt));
    let check = |text: &str| match json::from_str::<Value>(text) {
        Ok(_) => Ok(Validation::Valid),
        Err(error) => Ok(Validation::Invalid(ErrorMessage::Custom(format!("give JSON: {error}")))),
    };
    let text = Text::new(&prompt).with_validator(check).prompt()?;
    json::from_str(&text).map_err(|error| InquireError::Custom(error.into()))
}

fn is_required(schema: &ElicitSchema, name: &str) -> bool {
    schema.required.iter().any(|wanted| wanted == name)
}

/// One field that is asked.
struct Asking<'a> {
    schema: &'a ElicitSchema,
    name: &'a str,
    field: &'a Field,
    prompt: &'a str,
    help: Option<String>,
    /// True if it has been asked before.
    is_edit: bool,
}

impl Asking<'_> {
    /// Asks, and puts the value into the content. A field that is left out has none.
    fn ask(&self, content: &mut Map<String, Value>) -> Result<(), InquireError> {
        let given = if self.is_edit { content.get(self.name).cloned() } else { self.default() };
        let value = match self.field {
            Field::Boolean(_) if self.is_optional() => {
                let choices = [(true.into(), "yes".to_owned()), (false.into(), "no".to_owned())];
                self.one(&choices, given.as_ref())?
            }
            Field::Boolean(_) => Some(self.confirm(given.as_ref())?),
            Field::String(_) | Field::Number(_) | Field::Integer(_) => self.text(given)?,
            choices if choices.is_multi_select() => self.several(given.as_ref())?,
            choices => {
                let choices = options(choices).into_iter().map(|(value, title)| (value.into(), title));
                self.one(&choices.collect::<Vec<_>>(), given.as_ref())?
            }
        };
        match value {
            Some(value) => drop(content.insert(self.name.to_owned(), value)),
            None => drop(content.remove(self.name)),
        }
        Ok(())
    }

    /// Returns whether the field can be left out. One that has a default would be sent with it.
    fn is_optional(&self) -> bool {
        !is_required(self.schema, self.name) && self.default().is_none()
    }

    fn default(&self) -> Option<Value> {
        let mut defaults = Map::new();
        fill_defaults(&self.only(), &mut defaults);
        defaults.remove(self.name)
    }

    /// Returns the form with no other field.
    fn only(&self) -> ElicitSchema {
        ElicitSchema {
            properties: vec![(self.name.to_owned(), self.field.clone())],
            required: self.schema.required.iter().filter(|wanted| *wanted == self.name).cloned().collect(),
            ..ElicitSchema::default()
        }
    }

    fn confirm(&self, given: Option<&Value>) -> Result<Value, InquireError> {
        let mut confirm = Confirm::new(self.prompt);
        (confirm.default, confirm.help_message) = (given.and_then(Value::as_bool), self.help.as_deref());
        confirm.prompt().map(Value::from)
    }

    fn text(&self, given: Option<Value>) -> Result<Option<Value>, InquireError> {
        let mut is_whole = true;
        let given = given.map(|value| {
            let text = printable(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let shown = Screen::Err.name(&text);
            is_whole = shown == text;
            (shown, value)
        });
        let typed = Typed { field: self.field.clone(), is_optional: self.is_optional(), given };
        let shown = typed.given.as_ref().map(|(shown, _)| shown.as_str());
        let mut text = Text::new(self.prompt).with_validator(self.validator(&typed));
        text.help_message = self.help.as_deref();
        // Enter takes a default; a value that is edited can be cleared, unless it is too long for the row.
        if self.is_edit && is_whole {
            text.initial_value = shown;
        } else {
            text.default = shown;
        }
        Ok(typed.value(&text.prompt()?))
    }

    /// Asks for one of several choices.
    fn one(&self, choices: &[(Value, String)], given: Option<&Value>) -> Result<Option<Value>, InquireError> {
        let mut titles: Vec<String> = choices.iter().map(|(_, title)| choice(title)).collect();
        if self.is_optional() {
            titles.push(LEFT_OUT.to_owned());
        }
        let at = choices.iter().position(|(value, _)| Some(value) == given).unwrap_or_default();
        let mut select = Select::new(self.prompt, titles).with_starting_cursor(at);
        if let Some(help) = &self.help {
            select.help_message = Some(help);
        }
        let picked = select.raw_prompt()?.index;
        Ok(choices.get(picked).map(|(value, _)| value.clone()))
    }

    fn several(&self, given: Option<&Value>) -> Result<Option<Value>, InquireError> {
        let options = options(self.field);
        let titles: Vec<String> = options.iter().map(|(_, title)| choice(title)).collect();
        let is_given = |value: &str| {
            given.and_then(Value::as_array).is_some_and(|given| given.iter().any(|one| one == value))
        };
        let chosen: Vec<usize> = (0..options.len()).filter(|at| is_given(&options[*at].0)).collect();
        let picked = |picked: &[ListOption<&String>]| {
            let titles: Vec<&str> = picked.iter().map(|one| one.value.as_str()).collect();
            Screen::Err.name(&titles.join(", "))
        };
        let mut select = MultiSelect::new(self.prompt, titles).with_validator(self.picks(&options));
        select.formatter = &picked;
        if let Some(help) = &self.help {
            select.help_message = Some(help);
        }
        let picked = select.with_default(&chosen).raw_prompt()?;
        let picked = picked.into_iter().filter_map(|one| Some(options.get(one.index)?.0.clone().into()));
        let picked: Vec<Value> = picked.collect();
        let is_left_out = picked.is_empty() && self.is_optional();
        Ok((!is_left_out).then(|| picked.into()))
    }

    /// Returns the check of picked choices against the field.
    fn picks(&self, options: &[(String, String)]) -> impl MultiOptionValidator<String> + 'static {
        let (only, key, is_optional) = (self.only(), self.name.to_owned(), self.is_optional());
        let values: Vec<String> = options.iter().map(|(value, _)| value.clone()).collect();
        move |picked: &[ListOption<&String>]| {
            if picked.is_empty() && is_optional {
                return Ok(Validation::Valid);
            }
            let picked = picked.iter().filter_map(|one| Some(Value::from(values.get(one.index)?.clone())));
            Ok::<_, CustomUserError>(checked(&only, &key, picked.collect()))
        }
    }

    /// Returns the check of text against the field, as it is typed.
    fn validator(&self, typed: &Typed) -> impl StringValidator + 'static {
        let (only, key, typed) = (self.only(), self.name.to_owned(), typed.clone());
        move |text: &str| Ok(typed.value(text).map_or(Validation::Valid, |value| checked(&only, &key, value)))
    }
}

/// Reading of typed text as the value of a field.
#[derive(Clone)]
struct Typed {
    field: Field,
    is_optional: bool,
    /// Value that was there before, and the text that shows it.
    given: Option<(String, Value)>,
}

impl Typed {
    /// Returns the value; `None` if the field is left out.
    fn value(&self, text: &str) -> Option<Value> {
        match &self.given {
            // The text may have escapes, which are not in the value.
            Some((shown, value)) if shown == text => Some(value.clone()),
            _ if text.is_empty() && self.is_optional => None,
            _ => Some(parse(&self.field, text)),
        }
    }
}

/// Checks a value against a form with a single field.
fn checked(only: &ElicitSchema, key: &str, value: Value) -> Validation {
    match check(only, &Map::from_iter([(key.to_owned(), value)])) {
        Ok(_) => Validation::Valid,
        Err(problems) => {
            let why = Screen::Err.clipped(&printable(&problems.to_string()), BESIDE);
            Validation::Invalid(ErrorMessage::Custom(why))
        }
    }
}

/// Parses typed text as the field's type. Text that is not a number stays text, for the check to refuse.
fn parse(field: &Field, text: &str) -> Value {
    match field {
        Field::Number(_) | Field::Integer(_) => json::from_str(text).unwrap_or_else(|_| text.into()),
        _ => text.into(),
    }
}

/// Returns the title of a field, or its name, for a prompt on one row.
pub(super) fn title(name: &str, field: &Field) -> String {
    Screen::Err.name(&printable(field.title().unwrap_or(name)))
}

/// Returns a choice on one row. The review shows the whole of what was picked.
fn choice(title: &str) -> String {
    Screen::Err.clipped(title, BESIDE)
}

fn label(name: &str, field: &Field) -> String {
    printable(&match (field.title(), field.description()) {
        (Some(title), Some(description)) => format!("{title} ({description})"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => name.to_owned(),
    })
}

/// Returns the choices of a field: the value sent, and the text shown.
pub(super) fn options(field: &Field) -> Vec<(String, String)> {
    field.choices().into_iter().map(|(value, title)| (value.to_owned(), printable(title))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Field, label, options, title};

    fn field(schema: serde_json::Value) -> Field {
        serde_json::from_value(schema).unwrap()
    }

    /// E5: names, titles, descriptions and choices of a form are shown, and not obeyed; what is sent stays as it was.
    #[test]
    fn what_a_form_shows_is_printable() {
        let plain = field(json!({ "type": "string" }));
        assert_eq!(label("a\u{1b}[2J", &plain), "a\\u{1b}[2J");
        assert_eq!(title("a\u{1b}[2J", &plain), "a\\u{1b}[2J");
        let titled = field(json!({ "type": "string", "title": "T\n", "description": "\u{202e}D" }));
        assert_eq!(label("a", &titled), "T\\n (\\u{202e}D)");
        let choice = field(json!({ "type": "string", "enum": ["x\u{7}", "y"] }));
        assert_eq!(options(&choice)[0], ("x\u{7}".to_owned(), "x\\u{7}".to_owned()));
        let choice = field(json!({ "type": "string", "oneOf": [{ "const": "x", "title": "\u{9b}1m" }] }));
        assert_eq!(options(&choice), [("x".to_owned(), "\\u{9b}1m".to_owned())]);
    }
}

//! Arguments of a call: `--arg key=value`, `--args`, and prompts for the rest.

use std::path::PathBuf;

use clap::Args;
use roundtrip::wire::{ElicitSchema, PromptArgument, json};
use serde_json::{Map, Value, json};

use crate::ask::{form, terminal};
use crate::exit::Failure;
use crate::files;
use crate::nearest::nearest;

/// Greatest number of references that are followed from one to the next.
const MAX_REFERENCES: usize = 8;

/// Options for arguments.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Arguments of the call")]
pub(crate) struct ArgumentOptions {
    /// One argument, read as the type that the schema says; repeated for a list
    #[arg(short = 'a', long = "arg", value_name = "KEY=VALUE")]
    each: Vec<String>,
    /// All arguments as JSON, `@FILE` for those in a file, or `@-` for standard input
    #[arg(long = "args", value_name = "JSON")]
    all: Option<String>,
}

impl ArgumentOptions {
    /// Returns whether the schema is needed to read them.
    pub(crate) fn need_schema(&self) -> bool {
        !self.each.is_empty() || self.all.is_none()
    }

    /// Returns the arguments given as a whole.
    pub(crate) async fn whole(&self) -> Result<Map<String, Value>, Failure> {
        let Some(all) = &self.all else { return Ok(Map::new()) };
        match all.strip_prefix('@') {
            Some(file) => {
                let file = PathBuf::from(file);
                // Standard input may come late: an interrupt is heard until then.
                terminal::blocking(move || files::read_json(&file)).await
            }
            None => json::from_str(all).map_err(|error| Failure::usage(format!("`--args`: {error}"))),
        }
    }

    /// Returns the arguments of a tool, with those that are required and missing asked for in the terminal.
    pub(crate) async fn for_tool(&self, schema: &Value) -> Result<Map<String, Value>, Failure> {
        let mut arguments = self.whole().await?;
        for (key, text) in self.pairs()? {
            let value = Typed::of(schema, key)?.read(key, text)?;
            match (arguments.get_mut(key), value) {
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (_, value) => drop(arguments.insert(key.to_owned(), value)),
            }
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing: Vec<&str> = required.filter(|key| !arguments.contains_key(*key)).collect();
        let fields = missing.iter().map(|key| (*key, field(schema, key)));
        ask_for(fields.collect(), &mut arguments).await?;
        Ok(arguments)
    }

    /// Returns the arguments of a prompt, which are text.
    pub(crate) async fn for_prompt(&self, known: &[PromptArgument]) -> Result<Map<String, Value>, Failure> {
        let mut arguments = self.whole().await?;
        for (key, text) in self.pairs()? {
            if !known.iter().any(|argument| argument.name == key) {
                let names = nearest(key, known.iter().map(|argument| argument.name.as_str()));
                return Err(Failure::usage(format!("the prompt has no argument `{key}`{names}")));
            }
            arguments.insert(key.to_owned(), text.into());
        }
        let missing = known
            .iter()
            .filter(|argument| argument.required == Some(true) && !arguments.contains_key(&argument.name));
        let text = |argument: &PromptArgument| {
            let mut field = json!({ "type": "string", "title": argument.title });
            field["description"] = argument.description.clone().into();
            field
        };
        let fields = missing.map(|argument| (argument.name.as_str(), text(argument))).collect();
        ask_for(fields, &mut arguments).await?;
        Ok(arguments)
    }

    fn pairs<'a>(&'a self) -> Result<Vec<(&'a str, &'a str)>, Failure> {
        let pair = |text: &'a String| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key, value)),
            _ => Err(Failure::usage(format!("`--arg {text}`: give `key=value`"))),
        };
        self.each.iter().map(pair).collect()
    }
}

/// Asks for missing arguments in the terminal; without one they are an error.
async fn ask_for(missing: Vec<(&str, Value)>, arguments: &mut Map<String, Value>) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(key, _)| *key).collect();
    if !terminal::is_there() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let why = format!("missing arguments: {}; give each by `--arg key=value`", names.join(", "));
        return Err(Failure::usage(why));
    }
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let fields = missing.into_iter().filter_map(|(key, field)| {
        let field = json::from_value(&field).ok()?;
        Some((key.to_owned(), field))
    });
    let form =
        ElicitSchema { properties: fields.collect(), required: names.clone(), ..ElicitSchema::default() };
    let typed = terminal::prompted(move || {
        let mut content = Map::new();
        for name in names {
            if form.property(&name).is_some() {
                form::fill_field(&form, &name, &mut content)?;
            } else {
                // No field of a form: it is typed as JSON.
                let value = form::json(&format!("{name} (JSON)"))?;
                content.insert(name, value);
            }
        }
        Ok(content)
    });
    arguments.extend(typed.await?);
    Ok(())
}

/// Returns the schema of one argument, with references followed.
fn field(schema: &Value, key: &str) -> Value {
    let mut found = &schema["properties"][key];
    for _ in 0..MAX_REFERENCES {
        let Some(path) = found["$ref"].as_str().and_then(|path| path.strip_prefix('#')) else { break };
        match schema.pointer(path) {
            Some(next) => found = next,
            None => break,
        }
    }
    found.clone()
}

/// Types that an argument may have.
#[derive(Debug)]
struct Typed {
    types: Vec<String>,
    /// Types of its items, if it is a list.
    items: Vec<String>,
}

impl Typed {
    fn of(schema: &Value, key: &str) -> Result<Self, Failure> {
        let properties = schema["properties"].as_object();
        if schema["additionalProperties"] == false && properties.is_none_or(|known| !known.contains_key(key))
        {
            let names = nearest(key, properties.into_iter().flatten().map(|(name, _)| name.as_str()));
            return Err(Failure::usage(format!("the tool has no argument `{key}`{names}")));
        }
        let field = field(schema, key);
        let items = types(schema, &field["items"]);
        Ok(Self { types: types(schema, &field), items })
    }

    fn may_be(&self, kind: &str) -> bool {
        self.types.iter().any(|one| one == kind)
    }

    /// Reads the text of an argument.
    fn read(&self, key: &str, text: &str) -> Result<Value, Failure> {
        let parsed = json::from_str::<Value>(text).ok();
        let fits = |value: &Value| match value {
            Value::Null => self.may_be("null"),
            Value::Bool(_) => self.may_be("boolean"),
            Value::Number(number) => {
                self.may_be("number") || self.may_be("integer") && (number.is_i64() || number.is_u64())
            }
            Value::String(_) => false,
            Value::Array(_) => self.may_be("array"),
            Value::Object(_) => self.may_be("object"),
        };
        if let Some(value) = parsed.clone().filter(fits) {
            return Ok(value);
        }
        if self.may_be("string") {
            return Ok(text.into());
        }
        if self.may_be("array") {
            let items = Self { types: self.items.clone(), items: Vec::new() };
            return Ok(json!([items.read(key, text)?]));
        }
        if self.types.is_empty() {
            return Ok(parsed.unwrap_or_else(|| text.into()));
        }
        Err(Failure::usage(format!(
            "the argument `{key}` is `{text}`, and should be of type {}",
            self.types.join(" or ")
        )))
    }
}

/// Returns the types that a schema names, itself or in its alternatives.
fn types(schema: &Value, field: &Value) -> Vec<String> {
    let named = match &field["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    if !named.is_empty() {
        return named;
    }
    if let Some(values) = field["enum"].as_array() {
        return if values.iter().all(Value::is_string) { vec!["string".to_owned()] } else { Vec::new() };
    }
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|word| field[*word].as_array()).flatten();
    let direct = alternatives.map(|one| match one["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(path) => schema.pointer(path).map_or(Value::Null, |one| one["type"].clone()),
        None => one["type"].clone(),
    });
    direct.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string" }, "count": { "type": "integer" }, "share": { "type": "number" },
                "yes": { "type": "boolean" }, "tags": { "type": "array", "items": { "type": "string" } },
                "more": { "type": "object" }, "level": { "$ref": "#/$defs/Level" },
                "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }, "any": {},
            },
            "$defs": { "Level": { "enum": ["low", "high"] } },
        })
    }

    fn read(key: &str, text: &str) -> Result<Value, String> {
        let typed = Typed::of(&schema(), key).map_err(|failure| format!("{failure:?}"))?;
        typed.read(key, text).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn arguments_are_read_by_their_type() {
        let cases = [
            ("name", "42", json!("42")),
            ("name", "true", json!("true")),
            ("count", "42", json!(42)),
            ("share", "0.5", json!(0.5)),
            ("yes", "true", json!(true)),
            ("tags", "a", json!(["a"])),
            ("tags", r#"["a", "b"]"#, json!(["a", "b"])),
            ("more", r#"{"a": 1}"#, json!({ "a": 1 })),
            ("level", "low", json!("low")),
            ("maybe", "null", Value::Null),
            ("maybe", "7", json!(7)),
            ("any", "text", json!("text")),
            ("any", "[1]", json!([1])),
        ];
        for (key, text, value) in cases {
            assert_eq!(read(key, text), Ok(value), "{key}={text}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        for (key, text, why) in [
            ("count", "1.5", "integer"),
            ("count", "many", "integer"),
            ("yes", "1", "boolean"),
            ("more", "x", "object"),
            ("conut", "1", "did you mean `count`?"),
        ] {
            let failure = read(key, text).unwrap_err();
            assert!(failure.contains(why) && failure.contains(key), "{failure}");
        }
    }

    #[test]
    fn pairs_have_a_key() {
        let options = |text: &str| ArgumentOptions { each: vec![text.to_owned()], all: None };
        assert_eq!(options("a=b=c").pairs().unwrap(), [("a", "b=c")]);
        assert_eq!(options("a=").pairs().unwrap(), [("a", "")]);
        assert!(options("=b").pairs().is_err() && options("b").pairs().is_err());
    }

    #[tokio::test]
    async fn a_repeated_argument_is_a_list() {
        let options =
            ArgumentOptions { each: vec!["tags=a".into(), "tags=b".into()], all: Some("{}".into()) };
        assert_eq!(Value::from(options.for_tool(&schema()).await.unwrap()), json!({ "tags": ["a", "b"] }));
    }
}

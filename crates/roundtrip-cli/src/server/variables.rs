//! Variables in configuration files: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${workspaceFolder}`, ..

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use inquire::error::InquireError;
use roundtrip::wire::json;
use serde::Deserialize;
use serde_json::Value;

use crate::ask::terminal;

/// Reason a variable has no value.
#[derive(Debug)]
pub(super) enum Unfilled {
    /// It is not known.
    Missing(String),
    /// Its prompt was not answered.
    Prompt(InquireError),
}

impl From<String> for Unfilled {
    fn from(why: String) -> Self {
        Self::Missing(why)
    }
}

impl From<&str> for Unfilled {
    fn from(why: &str) -> Self {
        Self::Missing(why.to_owned())
    }
}

impl From<InquireError> for Unfilled {
    fn from(error: InquireError) -> Self {
        Self::Prompt(error)
    }
}

/// Beginning of a variable that the user is asked for.
const INPUT: &str = "input:";

/// Returns whether the user may be asked for a part of a text.
pub(super) fn may_prompt(text: &str) -> bool {
    text.contains(&format!("${{{INPUT}"))
}

/// Values of the variables in one file.
pub(super) struct Variables {
    workspace: PathBuf,
    inputs: Vec<Value>,
    /// Inputs that the user has typed.
    typed: HashMap<String, String>,
}

/// Value that a file wants the user to be asked for.
#[derive(Deserialize)]
struct Input {
    id: String,
    #[serde(default, rename = "type")]
    kind: String,
    description: Option<String>,
    default: Option<String>,
    #[serde(default)]
    password: bool,
    /// Values to pick one of.
    #[serde(default)]
    options: Vec<Pick>,
}

/// Value to be picked, by itself or with a text to show.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Pick {
    label: String,
    value: String,
}

impl TryFrom<Value> for Pick {
    type Error = &'static str;

    fn try_from(option: Value) -> Result<Self, Self::Error> {
        let text = |member: &str| option[member].as_str().map(str::to_owned);
        let labelled = || Some(Self { label: text("label")?, value: text("value")? });
        match &option {
            Value::String(value) => Ok(Self { label: value.clone(), value: value.clone() }),
            _ => labelled().ok_or("an option is a text, or has a `label` and a `value`"),
        }
    }
}

impl Input {
    /// Returns the value: from the terminal, or the default without one.
    fn value(&self) -> Result<String, Unfilled> {
        if self.kind == "command" {
            let why =
                format!("`${{input:{}}}` is of the type `command`, which only an editor can run", self.id);
            return Err(why.into());
        }
        if terminal::is_there() {
            return Ok(self.asked()?);
        }
        let missing = || format!("`${{input:{}}}` has to be typed, and there is no terminal", self.id);
        Ok(self.default.clone().ok_or_else(missing)?)
    }

    /// Asks the user.
    fn asked(&self) -> Result<String, InquireError> {
        let (prompt, default) = (self.description.as_deref().unwrap_or(&self.id), self.default.as_deref());
        if self.options.is_empty() {
            return if self.password { terminal::secret(prompt) } else { terminal::line(prompt, default) };
        }
        let labels: Vec<&str> = self.options.iter().map(|option| option.label.as_str()).collect();
        let at =
            self.options.iter().position(|option| Some(option.value.as_str()) == default).unwrap_or_default();
        let picked = terminal::pick(prompt, &labels, at)?;
        Ok(self.options.get(picked).map(|option| option.value.clone()).unwrap_or_default())
    }
}

impl Variables {
    /// Creates the variables of a file, which lies in its workspace or in a folder of an editor below it.
    pub(super) fn new(file: &Path, inputs: Option<&Value>) -> Self {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let folder = file.parent().unwrap_or(Path::new("."));
        let is_editors = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let workspace = if is_editors { folder.parent().unwrap_or(folder) } else { folder };
        let inputs = inputs.and_then(Value::as_array).cloned().unwrap_or_default();
        Self { workspace: workspace.to_owned(), inputs, typed: HashMap::new() }
    }

    /// Returns the folder that paths of the file are relative to.
    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Replaces every variable in a text.
    pub(super) fn fill(&mut self, text: &str) -> Result<String, Unfilled> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            filled.push_str(before);
            let (name, after) =
                behind.split_once('}').ok_or_else(|| format!("`{text}` has no `}}` to its `${{`"))?;
            filled.push_str(&self.value(name)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&mut self, name: &str) -> Result<String, Unfilled> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        match name {
            "workspaceFolder" => return Ok(shown(&self.workspace)),
            "workspaceFolderBasename" => {
                return Ok(self.workspace.file_name().map(|name| shown(name.as_ref())).unwrap_or_default());
            }
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
            "userHome" => {
                let home = std::env::home_dir().ok_or("there is no home folder for `${userHome}`")?;
                return Ok(shown(&home));
            }
            _ => {}
        }
        if let Some(id) = name.strip_prefix(INPUT) {
            return self.input(id);
        }
        let (name, default) = match name.strip_prefix("env:").unwrap_or(name).split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (name.strip_prefix("env:").unwrap_or(name), None),
        };
        let value = std::env::var(name).ok().or(default);
        Ok(value.ok_or_else(|| format!("the environment variable `{name}` is not set"))?)
    }

    /// Asks the user for an input, once.
    fn input(&mut self, id: &str) -> Result<String, Unfilled> {
        if let Some(typed) = self.typed.get(id) {
            return Ok(typed.clone());
        }
        let input = self.inputs.iter().find(|input| input["id"] == id);
        let input = input.ok_or_else(|| format!("`${{input:{id}}}` is not among its `inputs`"))?;
        let input: Input = json::from_value(input).map_err(|error| format!("`${{input:{id}}}`: {error}"))?;
        let value = input.value()?;
        self.typed.insert(id.to_owned(), value.clone());
        Ok(value)
    }
}

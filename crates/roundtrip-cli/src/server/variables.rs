//! Variables in configuration files: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${workspaceFolder}`, ..

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::ask::terminal;

/// Values of the variables in one file.
pub(super) struct Variables {
    workspace: PathBuf,
    inputs: Vec<Input>,
    /// Inputs that the user has typed.
    typed: HashMap<String, String>,
}

/// Value that a file wants the user to be asked for.
#[derive(Deserialize)]
struct Input {
    id: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    default: Option<String>,
    #[serde(default)]
    password: bool,
}

impl Variables {
    /// Creates the variables of a file, which lies in its workspace or in a folder of an editor below it.
    pub(super) fn new(file: &Path, inputs: Option<&Value>) -> Self {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let folder = file.parent().unwrap_or(Path::new("."));
        let is_editors = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let workspace = if is_editors { folder.parent().unwrap_or(folder) } else { folder };
        let inputs =
            inputs.and_then(|inputs| serde_json::from_value(inputs.clone()).ok()).unwrap_or_default();
        Self { workspace: workspace.to_owned(), inputs, typed: HashMap::new() }
    }

    /// Replaces every variable in a text.
    pub(super) fn fill(&mut self, text: &str) -> Result<String, String> {
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

    fn value(&mut self, name: &str) -> Result<String, String> {
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
        if let Some(id) = name.strip_prefix("input:") {
            return self.input(id);
        }
        let (name, default) = match name.strip_prefix("env:").unwrap_or(name).split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (name.strip_prefix("env:").unwrap_or(name), None),
        };
        std::env::var(name)
            .ok()
            .or(default)
            .ok_or_else(|| format!("the environment variable `{name}` is not set"))
    }

    /// Asks the user for an input, once.
    fn input(&mut self, id: &str) -> Result<String, String> {
        if let Some(typed) = self.typed.get(id) {
            return Ok(typed.clone());
        }
        let input = self.inputs.iter().find(|input| input.id == id);
        let input = input.ok_or_else(|| format!("`${{input:{id}}}` is not among its `inputs`"))?;
        if !terminal::is_there() {
            return match &input.default {
                Some(default) => Ok(default.clone()),
                None => Err(format!("`${{input:{id}}}` has to be typed, and there is no terminal")),
            };
        }
        let prompt = input.description.as_deref().unwrap_or(id);
        let typed = terminal::line(prompt, input.default.as_deref(), input.password)?;
        self.typed.insert(id.to_owned(), typed.clone());
        Ok(typed)
    }
}

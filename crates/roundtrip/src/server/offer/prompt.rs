//! Prompts as an author describes them.

use std::fmt;

use roundtrip_core::wire::{self, CompleteResult, GetPromptResult, Icon, PromptArgument};
use serde_json::Value;

use super::catalog::{Described, Tables};
use super::completer::Completers;
use super::entry::Entry;
use super::list::Listing;
use super::scoped::scoped;
use super::setup::SetupError;
use crate::server::handler::function::{BoxHandler, Function, Parameters, erase, needs_of};
use crate::server::handler::needs::Needs;
use crate::server::handler::reply::IntoReply;
use crate::server::hook::Scope;

/// A prompt: a name, its arguments, and the function that fills it in.
///
/// ```
/// # use roundtrip::{Args, Prompt};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The code to review
///     code: String,
/// }
///
/// let review = Prompt::new("review", async |Args(Review { code })| format!("Please review:\n{code}"))
///     .description("Ask for a code review");
/// ```
#[must_use = "a prompt does nothing until it is given to a server"]
pub struct Prompt {
    definition: wire::Prompt,
    handler: BoxHandler<GetPromptResult>,
    completers: Completers,
    needs: Needs,
    scope: Scope,
}

impl Prompt {
    /// Creates a prompt that `handler` fills in. Its arguments come from the handler's [`Args`](crate::Args) parameter.
    pub fn new<P: Parameters, F: Function<P> + Send + Sync>(name: impl Into<String>, handler: F) -> Self
    where
        F::Output: IntoReply<GetPromptResult>,
        F::Future: Send,
    {
        let needs = needs_of::<P>();
        let mut definition = wire::Prompt::new(name);
        definition.arguments = needs.arguments.as_ref().map(arguments_of).unwrap_or_default();
        Self {
            definition,
            handler: erase(handler),
            completers: Completers::default(),
            needs,
            scope: Scope::default(),
        }
    }

    /// Sets the description: what the prompt is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the name shown to people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Adds an icon for user interfaces.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Suggests values for an argument while it is typed.
    ///
    /// The completer takes [`Partial`](super::Partial), the text so far, and parameters as handlers do, except those that ask.
    /// It returns a `Vec<String>`, or a `Result` of one.
    pub fn complete<P: Parameters, F: Function<P> + Send + Sync>(
        mut self,
        argument: impl Into<String>,
        suggest: F,
    ) -> Self
    where
        F::Output: IntoReply<CompleteResult>,
        F::Future: Send,
    {
        self.completers.add(argument.into(), suggest, &mut self.needs);
        self
    }
}

scoped!(Prompt, "this prompt", "every request for this prompt, and around completions of its arguments");

impl Described for Prompt {
    type Definition = wire::Prompt;

    fn definition(&self) -> &wire::Prompt {
        &self.definition
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn listing(tables: &mut Tables) -> &mut Listing<wire::Prompt> {
        &mut tables.prompts
    }

    fn finish(self) -> Result<Entry<wire::Prompt>, SetupError> {
        let wrong = |problem: String| SetupError::new("prompt", &self.definition.name, problem);
        if self.definition.name.is_empty() {
            return Err(wrong("a prompt needs a name".into()));
        }
        let known: Vec<&str> =
            self.definition.arguments.iter().map(|argument| argument.name.as_str()).collect();
        if let Some(mistake) = self.completers.mistake(&known, "arguments") {
            return Err(wrong(mistake));
        }
        self.needs.check_asked(|name| known.contains(&name)).map_err(wrong)?;
        Ok(Entry {
            definition: self.definition,
            handler: self.handler,
            scope: self.scope,
            own: self.completers,
        })
    }
}

/// Returns the prompt arguments of a type, in the order of its schema.
fn arguments_of(schema: &Value) -> Vec<PromptArgument> {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| PromptArgument {
            name: name.clone(),
            title: property["title"].as_str().map(str::to_owned),
            description: property["description"].as_str().map(str::to_owned),
            required: Some(required(name)),
        })
        .collect()
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

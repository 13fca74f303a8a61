//! Tools as an author describes them.

use roundtrip_core::seal::Binding;
use roundtrip_core::wire::{
    self, CallTool, CallToolResult, HeaderParams, Icon, MetaObject, Method, Raw, ToolAnnotations,
    check_meta_key,
};
use serde_json::{Value, json};

use super::catalog::{Described, Tables};
use super::entry::{Entry, ToolEntry, ToolParts};
use super::list::Listing;
use super::schema::{name_object, standard_formats};
use super::scoped::scoped;
use super::setup::SetupError;
use crate::schema::Check;
use crate::server::handler::function::{BoxHandler, Function, Parameters, erase, needs_of};
use crate::server::handler::needs::Needs;
use crate::server::handler::reply::IntoReply;
use crate::server::hook::Scope;
use crate::server::when::When;
use crate::task::task_kind;

/// A tool: a name, a description for the model, and the function that runs.
///
/// ```
/// # use roundtrip::{Args, Tool};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let add = Tool::new("add", async |Args(Add { a, b })| (a + b).to_string())
///     .description("Add two numbers")
///     .read_only();
/// ```
#[must_use = "a tool does nothing until it is given to a server"]
pub struct Tool {
    definition: wire::Tool,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    derived_output: Option<Value>,
    handler: BoxHandler<CallToolResult>,
    needs: Needs,
    when: Option<When>,
    /// Version of its tasks, then the older ones that it still runs.
    versions: Vec<String>,
    scope: Scope,
}

impl Tool {
    /// Creates a tool that runs `handler`. Its input schema comes from the handler's [`Args`](crate::Args) parameter, its
    /// output schema from a [`Json`](crate::Json) return type.
    pub fn new<P: Parameters, F: Function<P> + Send + Sync>(name: impl Into<String>, handler: F) -> Self
    where
        F::Output: IntoReply<CallToolResult>,
        F::Future: Send,
    {
        Self {
            definition: wire::Tool::new(name, Raw::from(Value::Null)),
            input_schema: None,
            output_schema: None,
            derived_output: F::Output::output_schema().map(Value::from),
            handler: erase(handler),
            needs: needs_of::<P>(),
            when: None,
            versions: vec![String::new()],
            scope: Scope::default(),
        }
    }

    /// Lets calls of the tool become tasks, for clients that can be given one. The server needs a store for them
    /// ([`Server::tasks`](crate::Server::tasks)).
    pub fn task(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }

    /// Sets the version of the tool's tasks; it is empty unless set. Only processes whose tool has this name and this version run a
    /// task. Change it when new code must not run tasks that older code has begun: other arguments, other steps. Tasks of older
    /// versions then wait for processes that still have them, unless the tool [runs those too](Self::runs_versions).
    ///
    /// ```
    /// # use roundtrip::{Tool, When};
    /// let report = Tool::new("report", async || "all is well").task(When::Required).version("3").runs_versions(["2"]);
    /// ```
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.versions[0] = version.into();
        self
    }

    /// Names older [versions](Self::version) whose tasks the tool still runs. The empty one is that of a tool that never set any.
    pub fn runs_versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
        self.versions.extend(versions.into_iter().map(Into::into));
        self
    }

    /// Sets the description for the model: what the tool does.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the name shown to people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Sets a schema of your own for the arguments, in place of the one derived from the handler. Pair it with
    /// `Args<serde_json::Value>` where no type fits. Without the feature `validation` it is a [`SetupError`].
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Sets a schema of your own for the structured output. Every result is checked against it; without the feature
    /// `validation` it is a [`SetupError`].
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Sets hints about the tool's behaviour.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Hints that the tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.definition.annotations.get_or_insert_default().read_only_hint = Some(true);
        self
    }

    /// Hints that the tool may destroy something.
    pub fn destructive(mut self) -> Self {
        self.definition.annotations.get_or_insert_default().destructive_hint = Some(true);
        self
    }

    /// Hints that calling twice does no more than calling once.
    pub fn idempotent(mut self) -> Self {
        self.definition.annotations.get_or_insert_default().idempotent_hint = Some(true);
        self
    }

    /// Adds an icon for user interfaces.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Adds metadata of your own under `_meta`. The key has your prefix, such as `com.example/`.
    pub fn meta(mut self, key: impl Into<String>, value: Value) -> Self {
        self.definition.meta.get_or_insert_with(MetaObject::new).insert(key.into(), value);
        self
    }
}

scoped!(Tool, "this tool", "every call of this tool");

impl Described for Tool {
    type Definition = wire::Tool;

    fn definition(&self) -> &wire::Tool {
        &self.definition
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn may_be_task(&self) -> bool {
        self.when.is_some()
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn listing(tables: &mut Tables) -> &mut Listing<wire::Tool> {
        &mut tables.tools
    }

    /// Checks the name and the schemas, and compiles the schemas.
    fn finish(mut self) -> Result<ToolEntry, SetupError> {
        let name = self.definition.name.clone();
        let wrong = |problem: String| SetupError::new("tool", &name, problem);
        check_name(&name).map_err(wrong)?;
        for key in self.definition.meta.iter().flat_map(MetaObject::keys) {
            check_meta_key(key).map_err(|why| wrong(format!("`_meta`: {why}")))?;
        }
        if self.when.is_some() && self.needs.stream {
            let problem =
                "its handler takes `ResumableStream`, and a task has no connection: leave one of them out";
            return Err(wrong(problem.into()));
        }

        let (input_schema, input) = match (self.input_schema, self.needs.arguments.take()) {
            (Some(written), _) => {
                let check = Check::written(&written).map_err(|why| wrong(format!("input schema: {why}")))?;
                (written, check)
            }
            (None, Some(mut derived)) => {
                name_object(&mut derived);
                let check = Check::derived(&derived).map_err(|why| wrong(format!("input schema: {why}")))?;
                (standard_formats(derived), check)
            }
            (None, None) => (json!({ "type": "object", "additionalProperties": false }), Check::Nothing),
        };
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(wrong(
                "the input schema must be an object: give the handler `Args` of a struct, or of an enum whose variants are \
                 all objects"
                    .into(),
            ));
        }
        self.needs.check_asked(|name| may_have(&input_schema, name)).map_err(wrong)?;
        let headers = HeaderParams::from_schema(&input_schema).map_err(|error| wrong(error.to_string()))?;

        let output = match (self.output_schema, self.derived_output) {
            (Some(written), _) => Some((Check::written(&written), written)),
            (None, Some(derived)) => Some((Check::derived(&derived), standard_formats(derived))),
            (None, None) => None,
        };
        let mut definition = self.definition;
        let mut output_check = None;
        if let Some((check, schema)) = output {
            output_check = Some(check.map_err(|why| wrong(format!("output schema: {why}")))?);
            definition.output_schema = Some(Raw::from(schema));
        }
        definition.input_schema = Raw::from(input_schema);
        let target = Binding::target(CallTool::NAME, &definition.name);
        let kinds = self.versions.iter().map(|version| task_kind(&definition.name, version)).collect();
        let own = ToolParts { input, output: output_check, headers, target, when: self.when, kinds };
        Ok(Entry { definition, handler: self.handler, scope: self.scope, own })
    }
}

/// Returns whether arguments of a schema can have a property: one that it names, or any where it names not all of them.
fn may_have(schema: &Value, name: &str) -> bool {
    const OTHERS: [&str; 7] = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties"];
    schema["properties"].get(name).is_some()
        || OTHERS.iter().any(|keyword| schema.get(keyword).is_some())
        || schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false))
}

/// Checks that every client accepts a name (tools, "Tool Names").
fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=128).contains(&name.len()) && name.bytes().all(fits) {
        Ok(())
    } else {
        Err("a tool's name has 1 to 128 characters, all letters, digits, `_`, `-` or `.`".into())
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

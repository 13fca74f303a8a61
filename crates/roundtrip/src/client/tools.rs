//! Tools as they were listed: arguments that go into headers, and output schemas.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use roundtrip_core::error::{Error, PeerMisbehaved};
use roundtrip_core::wire::{HeaderParam, HeaderParams, Raw, Tool, clip};
use serde::Deserialize;
use serde_json::Value;

use crate::lock::lock;
use crate::schema::{Misfit, Schema};

/// Number of tools that are remembered; those beyond are called as if they had not been listed.
const CAPACITY: usize = 10_000;
/// Bytes of output schemas and mirrored headers that are remembered with them.
const CAPACITY_BYTES: usize = 32 * 1024 * 1024;

/// Tools by name. Those with nothing to remember are not in here.
#[derive(Debug, Default)]
pub(crate) struct Tools(Mutex<Memory>);

/// Tools as the holder of some credentials sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolsView<'a> {
    tools: &'a Tools,
    credentials: u64,
}

#[derive(Debug, Default)]
struct Memory {
    /// Number of the credentials that the tools were listed to. It only grows: a view of earlier ones finds no tool.
    credentials: u64,
    tools: HashMap<String, Arc<Known>>,
    /// Bytes of their names, output schemas and mirrored headers.
    bytes: usize,
}

impl Memory {
    fn remove(&mut self, tool: &str) {
        if let Some(known) = self.tools.remove(tool) {
            self.bytes -= tool.len() + known.weight();
        }
    }

    /// Remembers a tool where there is room for it.
    fn insert(&mut self, tool: &str, known: Known) {
        self.remove(tool);
        let bytes = self.bytes + tool.len() + known.weight();
        if self.tools.len() < CAPACITY && bytes <= CAPACITY_BYTES {
            self.bytes = bytes;
            self.tools.insert(tool.to_owned(), Arc::new(known));
        }
    }
}

/// Entry of a tool.
struct Known {
    headers: HeaderParams,
    output: Option<Raw>,
    /// Compiled when it is first needed; none where the schema is of no use.
    compiled: OnceLock<Option<Schema>>,
}

impl Tools {
    /// Returns the tools as the holder of credentials with this number sees them.
    pub(crate) fn of(&self, credentials: u64) -> ToolsView<'_> {
        ToolsView { tools: self, credentials }
    }
}

impl ToolsView<'_> {
    /// Returns the memory, without tools that were listed to earlier credentials. `None` if there are later ones by now.
    fn known(&self) -> Option<MutexGuard<'_, Memory>> {
        let mut known = lock(&self.tools.0);
        if self.credentials > known.credentials {
            *known = Memory { credentials: self.credentials, ..Memory::default() };
        }
        (self.credentials == known.credentials).then_some(known)
    }

    /// Forgets tools that were listed to earlier credentials.
    pub(crate) fn forget_earlier(&self) {
        drop(self.known());
    }

    fn get(&self, tool: &str) -> Option<Arc<Known>> {
        self.known()?.tools.get(tool).map(Arc::clone)
    }

    /// Remembers a tool of a list that was asked for with these credentials; returns whether the tool may stay in it (H3).
    pub(crate) fn learn(&self, tool: &Tool, has_headers: bool) -> bool {
        let headers = if has_headers {
            HeaderParams::from_schema(&tool.input_schema.to_value())
        } else {
            Ok(HeaderParams::default())
        };
        let output = tool.output_schema.as_ref().filter(|_| cfg!(feature = "validation"));
        let mut known = self.known();
        match headers {
            Ok(headers) if headers.is_empty() && output.is_none() => {
                if let Some(known) = &mut known {
                    known.remove(&tool.name);
                }
                true
            }
            Ok(headers) => {
                if let Some(known) = &mut known
                    && known.tools.get(&tool.name).is_none_or(|old| !old.says(&headers, output))
                {
                    let output = output.cloned();
                    known.insert(&tool.name, Known { headers, output, compiled: OnceLock::new() });
                }
                true
            }
            Err(reason) => {
                if let Some(known) = &mut known {
                    known.remove(&tool.name);
                }
                tracing::warn!(tool = &*clip(&tool.name), %reason, "a tool is left out: its header annotations are invalid");
                false
            }
        }
    }

    /// Returns the mirrored headers of a call. A tool that was never listed has none.
    pub(crate) fn mirrored(&self, tool: &str, arguments: Option<&Raw>) -> Vec<(String, String)> {
        match (self.get(tool), arguments) {
            (Some(known), Some(arguments)) if !known.headers.is_empty() => {
                known.headers.values(&arguments.to_value())
            }
            _ => Vec::new(),
        }
    }

    /// Checks a result against the schema its tool was listed with (tools, "Output Schema"). A tool that was never
    /// listed, or whose schema is of no use, is not checked; nor is one that reports an error. Without the feature
    /// `validation` none is.
    pub(crate) fn check(&self, tool: &str, result: &Raw) -> Result<(), Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Peek {
            #[serde(default)]
            is_error: Option<bool>,
            #[serde(default)]
            structured_content: Option<Value>,
        }
        let Some(known) = self.get(tool) else { return Ok(()) };
        let Some(schema) = known.schema(tool) else { return Ok(()) };
        let Ok(Peek { is_error, structured_content }) = result.to() else { return Ok(()) };
        if is_error == Some(true) {
            return Ok(());
        }
        match schema.check(&structured_content.unwrap_or_default()) {
            Ok(()) => Ok(()),
            // The schema is the server's own, so refusing what it makes dear to check would protect no one.
            Err(Misfit::TooMuchWork) => {
                tracing::warn!(
                    tool,
                    "a result is not checked against the output schema: it takes too much work"
                );
                Ok(())
            }
            Err(Misfit::Problems(why)) => Err(PeerMisbehaved::UnfitOutput(format!(
                "the result of `{tool}` does not fit the output schema it was listed with: {why}"
            ))
            .into()),
        }
    }
}

impl Known {
    fn weight(&self) -> usize {
        let bytes =
            |param: &HeaderParam| param.header.len() + param.path.iter().map(String::len).sum::<usize>();
        let headers: usize = self.headers.iter().map(bytes).sum();
        headers + self.output.as_ref().map_or(0, |schema| schema.get().len())
    }

    fn says(&self, headers: &HeaderParams, output: Option<&Raw>) -> bool {
        self.headers == *headers && self.output.as_ref().map(Raw::get) == output.map(Raw::get)
    }

    /// References to the network are never followed, and what is dear to compile is not compiled (N5).
    fn schema(&self, tool: &str) -> Option<&Schema> {
        let compile = || {
            let schema = self.output.as_ref()?.to_value();
            match Schema::compile(&schema) {
                Ok(schema) => Some(schema),
                Err(reason) => {
                    tracing::warn!(
                        tool = &*clip(tool),
                        reason = &*clip(&reason),
                        "results are not checked against the output schema"
                    );
                    None
                }
            }
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known")
            .field("headers", &self.headers)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[cfg(feature = "validation")]
    fn tool(name: &str, bytes: usize) -> Tool {
        let schema = json!({ "type": "object", "description": "x".repeat(bytes) });
        serde_json::from_value(json!({ "name": name, "inputSchema": {}, "outputSchema": schema })).unwrap()
    }

    /// Z2: what is remembered of tools is bounded in bytes; those beyond are listed all the same.
    #[cfg(feature = "validation")]
    #[test]
    fn output_schemas_are_remembered_up_to_a_size() {
        let store = Tools::default();
        let tools = store.of(0);
        for number in 0..40 {
            assert!(tools.learn(&tool(&number.to_string(), 1 << 20), false));
        }
        assert!(tools.get("0").is_some() && tools.get("30").is_some() && tools.get("39").is_none());
        // The same tools again, and smaller ones in their place, take no more room.
        for number in 0..31 {
            assert!(tools.learn(&tool(&number.to_string(), 10), false));
        }
        assert!(tools.learn(&tool("39", 1 << 20), false));
        assert!(tools.get("39").is_some());
    }

    /// A server that lists other names each time does not fill the memory with annotations.
    #[test]
    fn mirrored_headers_are_remembered_up_to_a_size() {
        let store = Tools::default();
        let tools = store.of(0);
        let long = "x".repeat(200 << 10);
        for number in 0..200 {
            let marked = json!({ "type": "string", "x-mcp-header": "A" });
            let schema = json!({ "type": "object", "properties": { &*long: marked } });
            let tool = json!({ "name": number.to_string(), "inputSchema": schema });
            assert!(tools.learn(&serde_json::from_value(tool).unwrap(), true));
        }
        let known = tools.known().expect("no later credentials");
        assert!((100..170).contains(&known.tools.len()), "{}", known.tools.len());
        assert!(known.bytes <= CAPACITY_BYTES);
    }

    /// N3: tools that were listed to earlier credentials are remembered for no one; those with invalid annotations are left out
    /// of the list all the same.
    #[test]
    fn a_list_from_before_a_change_of_credentials_is_not_remembered() {
        let tools = Tools::default();
        let listed = |name: &str, mark: &str| {
            let marked = json!({ "type": "string", "x-mcp-header": mark });
            let schema = json!({ "type": "object", "properties": { "a": marked } });
            serde_json::from_value(json!({ "name": name, "inputSchema": schema })).unwrap()
        };
        let earlier = tools.of(1);
        assert!(earlier.learn(&listed("a", "A"), true) && earlier.get("a").is_some());
        assert!(tools.of(2).get("a").is_none());
        assert!(earlier.learn(&listed("a", "A"), true));
        assert!(!earlier.learn(&listed("b", "not a name"), true));
        assert!(tools.of(2).get("a").is_none() && earlier.get("a").is_none());
    }
}

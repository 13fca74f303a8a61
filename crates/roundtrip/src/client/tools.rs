//! What a client has learnt about tools by listing them: which arguments go into headers, and what results look
//! like.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use roundtrip_core::error::Error;
use roundtrip_core::wire::{HeaderParams, Raw, Tool};
use serde::Deserialize;
use serde_json::Value;

use crate::schema::{Misfit, Schema};

/// How many tools are remembered; those beyond are called as if they had not been listed.
const CAPACITY: usize = 10_000;

/// Tools by name. Those with nothing to remember are not in here.
#[derive(Debug, Default)]
pub(crate) struct Tools(Mutex<HashMap<String, Arc<Known>>>);

/// What is known of a tool.
struct Known {
    headers: HeaderParams,
    output: Option<Raw>,
    /// Compiled when it is first needed; none where the schema is of no use.
    compiled: OnceLock<Option<Schema>>,
}

impl Tools {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<Known>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, tool: &str) -> Option<Arc<Known>> {
        self.known().get(tool).map(Arc::clone)
    }

    /// Learns from a tool in a list; whether the tool may stay in it (H3).
    pub(crate) fn learn(&self, tool: &Tool, has_headers: bool) -> bool {
        let headers = if has_headers {
            HeaderParams::from_schema(&tool.input_schema.to_value())
        } else {
            Ok(HeaderParams::default())
        };
        let mut known = self.known();
        match headers {
            Ok(headers) if headers.is_empty() && tool.output_schema.is_none() => {
                known.remove(&tool.name);
                true
            }
            Ok(headers) => {
                let place = known.len() < CAPACITY || known.contains_key(&tool.name);
                let same =
                    known.get(&tool.name).is_some_and(|old| old.says(&headers, tool.output_schema.as_ref()));
                if place && !same {
                    let output = tool.output_schema.clone();
                    let learnt = Known { headers, output, compiled: OnceLock::new() };
                    known.insert(tool.name.clone(), Arc::new(learnt));
                }
                true
            }
            Err(reason) => {
                known.remove(&tool.name);
                tracing::warn!(tool = tool.name, %reason, "a tool is left out: its header annotations are invalid");
                false
            }
        }
    }

    /// The headers of a call. A tool that was never listed has none.
    pub(crate) fn mirrored(&self, tool: &str, arguments: Option<&Raw>) -> Vec<(String, String)> {
        match (self.get(tool), arguments) {
            (Some(known), Some(arguments)) if !known.headers.is_empty() => {
                known.headers.values(&arguments.to_value())
            }
            _ => Vec::new(),
        }
    }

    /// Holds a result against the schema its tool was listed with (tools, "Output Schema"). A tool that was never
    /// listed, or whose schema is of no use, is taken at its word; so is one that reports an error.
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
            // The schema is the server's own, so refusing what it makes dear to check would protect nobody.
            Err(Misfit::TooMuchWork) => {
                tracing::warn!(
                    tool,
                    "a result is not held against the output schema: it takes too much work"
                );
                Ok(())
            }
            Err(Misfit::Problems(why)) => Err(Error::PeerMisbehaved(format!(
                "the result of `{tool}` does not fit the output schema it was listed with: {why}"
            ))),
        }
    }
}

impl Known {
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
                    tracing::debug!(tool, reason, "results are not held against the output schema");
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

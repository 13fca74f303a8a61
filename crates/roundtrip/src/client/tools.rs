//! What a client has learnt about tools by listing them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roundtrip_core::wire::{HeaderParams, Raw, Tool};

/// How many tools are remembered; those beyond are called as if they had not been listed.
const CAPACITY: usize = 10_000;

/// The arguments to mirror in headers, by tool. Tools without any are not in here.
#[derive(Debug, Default)]
pub(crate) struct Tools(Mutex<HashMap<String, Arc<HeaderParams>>>);

impl Tools {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<HeaderParams>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a page of tools, and takes out those whose header annotations are invalid (H3).
    pub(crate) fn learn(&self, tools: &mut Vec<Tool>) {
        let mut known = self.known();
        tools.retain(|tool| match HeaderParams::from_schema(&tool.input_schema.to_value()) {
            Ok(params) if params.is_empty() => {
                known.remove(&tool.name);
                true
            }
            Ok(params) => {
                if known.len() < CAPACITY || known.contains_key(&tool.name) {
                    known.insert(tool.name.clone(), Arc::new(params));
                }
                true
            }
            Err(reason) => {
                known.remove(&tool.name);
                tracing::warn!(tool = tool.name, %reason, "a tool is left out: its header annotations are invalid");
                false
            }
        });
    }

    /// The headers of a call. A tool that was never listed has none.
    pub(crate) fn mirrored(&self, tool: &str, arguments: Option<&Raw>) -> Vec<(String, String)> {
        let params = self.known().get(tool).map(Arc::clone);
        match (params, arguments) {
            (Some(params), Some(arguments)) => params.values(&arguments.to_value()),
            _ => Vec::new(),
        }
    }
}

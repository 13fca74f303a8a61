//! Parts of a result that a scripted flow sends.

use std::fmt;
use std::sync::{Arc, Mutex};

use roundtrip_core::wire::{ContentBlock, PartNotificationParams, join_part};
use serde_json::Value;

use super::difference::Difference;
use super::error::ReplayError;
use crate::lock::lock;

/// Collection of the [`Parts`](crate::Parts) that a scripted flow sends.
#[derive(Clone, Default)]
pub struct SentParts(Arc<Mutex<Vec<ContentBlock>>>);

impl SentParts {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the parts so far, in order.
    pub fn all(&self) -> Vec<ContentBlock> {
        lock(&self.0).clone()
    }

    /// Returns the texts of the parts so far, in order. Parts of other kinds are left out.
    pub fn texts(&self) -> Vec<String> {
        lock(&self.0).iter().filter_map(|part| part.as_text().map(str::to_owned)).collect()
    }
}

impl fmt::Debug for SentParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentParts({})", lock(&self.0).len())
    }
}

/// Check of the parts of one flow.
pub(super) struct PartCheck {
    parts: SentParts,
    joined: Vec<ContentBlock>,
}

impl PartCheck {
    pub(super) fn new(parts: Option<&SentParts>) -> Self {
        Self { parts: parts.cloned().unwrap_or_default(), joined: Vec::new() }
    }

    /// Takes the parts of a round: none was sent before, and none is missing.
    pub(super) fn take(&mut self, sent: Vec<PartNotificationParams>) -> Result<(), ReplayError> {
        for part in sent {
            let mut parts = lock(&self.parts.0);
            let (number, due) = (part.part as usize, parts.len());
            if number != due {
                return Err(ReplayError::Failed(format!("part {number} was sent where part {due} was due")));
            }
            parts.push(part.content.clone());
            join_part(&mut self.joined, part.content);
        }
        Ok(())
    }

    /// Checks that the parts make up a result, unless the handler has failed after it sent them.
    pub(super) fn check(&self, result: &Value) -> Result<(), ReplayError> {
        if self.joined.is_empty() || result["isError"] == true {
            return Ok(());
        }
        let joined = serde_json::to_value(&self.joined).unwrap_or_default();
        match Difference::between(&joined, &result["content"]) {
            None => Ok(()),
            Some(Difference { place, first, then }) => Err(ReplayError::ChangedParts { place, first, then }),
        }
    }
}

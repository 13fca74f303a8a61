//! The parameters of a request, `_meta` left out.

use std::borrow::Cow;
use std::fmt;

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::wire::{CallTool, GetPrompt, Method as _, Raw, ReadResource, members};

/// Parameters by name, in the order they were set, each kept as JSON text.
#[derive(Clone, Default, PartialEq)]
pub struct Params(Vec<(Cow<'static, str>, Raw)>);

/// Shows names only: the values are arguments, answers and `requestState`.
impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

impl Params {
    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Sets a parameter, or removes it if the value is `None`.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: Option<Raw>) {
        let name = name.into();
        self.0.retain(|(member, _)| *member != name);
        self.0.extend(value.map(|value| (name, value)));
    }

    /// Removes all parameters but the one that names a target.
    pub(super) fn keep_target(&mut self) {
        self.0.retain(|(member, _)| member == "name" || member == "uri");
    }

    /// Iterates over all parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the number of parameters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the target of a request with these parameters: a tool or prompt by name, a resource by URI, a task by
    /// id.
    pub fn target(&self, method: &str) -> Option<String> {
        let member = match method {
            CallTool::NAME | GetPrompt::NAME => "name",
            ReadResource::NAME => "uri",
            other if other.starts_with("tasks/") => "taskId",
            _ => return None,
        };
        self.get(member).and_then(|target| target.to().ok())
    }
}

impl<N: Into<Cow<'static, str>>> FromIterator<(N, Raw)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, Raw)>>(members: I) -> Self {
        Self(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let params: Vec<(String, Raw)> =
            members::read_distinct(deserializer, "parameters by name", "parameters")?;
        Ok(params.into_iter().collect())
    }
}

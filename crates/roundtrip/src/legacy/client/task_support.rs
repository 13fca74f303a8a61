//! Tools of a server of 2025-11-25 that may be called as tasks (tasks, "Tool-Level Negotiation").

use std::collections::HashMap;
use std::sync::Arc;

use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{ListTools, Method as _, Raw};
use serde::Deserialize;
use serde_json::json;

use super::link::{SessionFailure, SessionLink};
use super::session::Session;
use crate::client::{ClientLimits, Error, ListBounds};

/// Parameter by which a call asks for a task.
pub(super) const TASK: &str = "task";

/// Tools that may be called as tasks, by name; true for those that have to be.
pub(super) type TaskTools = HashMap<String, bool>;

/// Returns whether a result of `initialize` allows calls of tools to be tasks.
pub(super) fn offers_tasks(result: &Raw) -> bool {
    result.to_value().pointer("/capabilities/tasks/requests/tools/call").is_some()
}

impl<L: SessionLink> Session<L> {
    /// Returns whether a tool may be called as a task: `Some(true)` if it has to be. The limits are the caller's.
    pub(super) async fn task_support(
        self: &Arc<Self>,
        tool: &str,
        limits: &ClientLimits,
    ) -> Result<Option<bool>, SessionFailure> {
        let mut tools = self.task_tools.lock().await;
        if tools.is_none() {
            *tools = Some(self.list_task_tools(limits).await?);
        }
        Ok(tools.as_ref().and_then(|tools| tools.get(tool).copied()))
    }

    /// Lists the tools anew with the next call: one was refused.
    pub(super) fn forget_task_tools(&self) {
        if let Ok(mut tools) = self.task_tools.try_lock() {
            *tools = None;
        }
    }

    async fn list_task_tools(self: &Arc<Self>, limits: &ClientLimits) -> Result<TaskTools, SessionFailure> {
        let (mut tools, mut params) = (TaskTools::new(), Params::default());
        let mut bounds = ListBounds::new(ListTools::NAME, limits);
        loop {
            bounds.next_page()?;
            let page = match self.aside(ListTools::NAME, &params).await {
                Ok(page) => page,
                // A server without a list has no tool that may be called so.
                Err(SessionFailure::Error(Error::Rejected(_))) => return Ok(tools),
                Err(failure) => return Err(failure),
            };
            bounds.read(&page)?;
            let page = page.to::<Page>().unwrap_or_default();
            bounds.found(page.tools.len(), page.next_cursor.as_deref())?;
            tools.extend(page.tools.into_iter().filter_map(Listed::support));
            let Some(cursor) = page.next_cursor else { return Ok(tools) };
            params.set("cursor", Some(json!(cursor).into()));
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Listed>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(default)]
    execution: Option<Execution>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    #[serde(default)]
    task_support: Option<String>,
}

impl Listed {
    fn support(self) -> Option<(String, bool)> {
        match self.execution?.task_support?.as_str() {
            "required" => Some((self.name, true)),
            "optional" => Some((self.name, false)),
            _ => None,
        }
    }
}

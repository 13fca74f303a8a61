//! Reading the result of a tool.

use std::fmt;

use serde::de::{DeserializeOwned, Error as _};

use super::{CallToolResult, ContentBlock, json};

impl CallToolResult {
    /// Returns all text of the content, one block after the other with a line break between them. It is empty where there
    /// is none.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }

    /// Decodes `structuredContent`; where the result has none, its [`text`](Self::text), as servers wrote JSON before there
    /// was structured content.
    ///
    /// The result of a tool that failed is decoded like any other: call [`into_result`](Self::into_result) first.
    ///
    /// # Errors
    /// If the JSON is not of this type, or there is neither structured content nor text that is JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match &self.structured_content {
            Some(structured) => structured.to(),
            None => json::from_str(&self.text()).map_err(|error| {
                serde_json::Error::custom(format!(
                    "no `structuredContent`, and the text does not fit: {error}"
                ))
            }),
        }
    }

    /// Makes an error of the result of a tool that failed (`isError`).
    ///
    /// # Errors
    /// [`ToolFailure`], whose text is the text of the result.
    pub fn into_result(self) -> Result<Self, ToolFailure> {
        if self.is_error == Some(true) { Err(ToolFailure(Box::new(self))) } else { Ok(self) }
    }
}

/// Result of a tool that failed, as an error. It displays the text of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure(Box<CallToolResult>);

impl ToolFailure {
    /// Returns the result.
    pub fn result(&self) -> &CallToolResult {
        &self.0
    }

    /// Returns the result.
    pub fn into_inner(self) -> CallToolResult {
        *self.0
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.text() {
            text if text.is_empty() => f.write_str("the tool failed without saying why"),
            text => f.write_str(&text),
        }
    }
}

impl std::error::Error for ToolFailure {}

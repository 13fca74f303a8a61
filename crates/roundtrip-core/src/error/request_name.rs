//! Names of requests in errors.

use std::fmt;

use crate::wire::clip;

/// Name of a request in an error: its method, and its target where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestName {
    /// Method of the request.
    pub method: &'static str,
    /// Tool or prompt by name, resource by URI.
    pub target: Option<String>,
}

impl RequestName {
    /// Creates the name of a request.
    pub fn new(method: &'static str, target: Option<String>) -> Self {
        Self { method, target }
    }
}

/// A method alone, of a request without a target.
impl From<&'static str> for RequestName {
    fn from(method: &'static str) -> Self {
        Self::new(method, None)
    }
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.method)?;
        match &self.target {
            Some(target) if !target.is_empty() => write!(f, " of `{}`", clip(target)),
            _ => Ok(()),
        }
    }
}

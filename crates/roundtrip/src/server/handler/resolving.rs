//! [`Resolving`]: a resolver of one call, shared by the parameters that take its value.

use std::any::TypeId;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use super::tool_error::ToolError;
use crate::lock::lock;
use crate::server::round::{AskError, Branch};

/// A resolver of one call: its value, or the future of it. The first parameter that is awaited runs it, all others wait for
/// the value, and each reads its own from JSON.
pub(super) struct Resolving {
    value: OnceCell<String>,
    /// The resolver, until it runs. In a box without a type, because two resolvers that need each other are a type without an
    /// end; they are found when the handler is registered.
    resolver: Mutex<Option<ResolverFuture>>,
    /// Its own key, and those of all resolvers that it needs.
    keys: Arc<[&'static str]>,
}

type ResolverFuture = Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send>>;

impl Resolving {
    /// Creates a resolver that is to run.
    pub(super) fn new(
        keys: Arc<[&'static str]>,
        resolver: impl Future<Output = Result<String, ToolError>> + Send + 'static,
    ) -> Self {
        Self { value: OnceCell::new(), resolver: Mutex::new(Some(Box::pin(resolver))), keys }
    }

    /// Creates a resolver that an earlier round has run.
    pub(super) fn remembered(value: String) -> Self {
        Self { value: OnceCell::new_with(Some(value)), resolver: Mutex::default(), keys: Arc::default() }
    }

    /// Returns the value, as JSON.
    pub(super) async fn value(&self) -> Result<&str, ToolError> {
        let run = || async {
            let resolver = lock(&self.resolver).take();
            // A failure ends the call, so that none begins again.
            resolver.ok_or(AskError::Closed)?.await
        };
        self.value.get_or_try_init(run).await.map(String::as_str)
    }
}

/// Resolvers of one call, by their types, while its parameters are taken.
#[derive(Default)]
pub(crate) struct Resolvers {
    known: Vec<(TypeId, Arc<Resolving>)>,
    /// Branch of the handler whose parameters are being taken.
    pub(super) branch: Branch,
    /// Keys of the resolvers that this branch needs, as far as they have been taken.
    needed: Vec<&'static str>,
}

impl Resolvers {
    /// Enters the branch of a resolver, whose parameters are taken next; returns the branch before it.
    pub(super) fn enter(&mut self, key: &'static str) -> (Branch, Vec<&'static str>) {
        (self.branch.replace(key), mem::take(&mut self.needed))
    }

    /// Returns to the branch before; returns the keys of the resolvers that the other needs.
    pub(super) fn leave(&mut self, (branch, needed): (Branch, Vec<&'static str>)) -> Vec<&'static str> {
        self.branch = branch;
        mem::replace(&mut self.needed, needed)
    }

    /// Returns a resolver that has been taken before, for one more parameter.
    pub(super) fn share(&mut self, resolver: TypeId) -> Option<Arc<Resolving>> {
        let (_, resolving) = self.known.iter().find(|(known, _)| *known == resolver)?;
        let resolving = Arc::clone(resolving);
        self.need(&resolving);
        Some(resolving)
    }

    pub(super) fn add(&mut self, resolver: TypeId, resolving: Resolving) -> Arc<Resolving> {
        let resolving = Arc::new(resolving);
        self.need(&resolving);
        self.known.push((resolver, Arc::clone(&resolving)));
        resolving
    }

    fn need(&mut self, resolving: &Resolving) {
        for key in &*resolving.keys {
            if !self.needed.contains(key) {
                self.needed.push(key);
            }
        }
    }
}

impl fmt::Debug for Resolving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolving").field("is_resolved", &self.value.initialized()).finish_non_exhaustive()
    }
}

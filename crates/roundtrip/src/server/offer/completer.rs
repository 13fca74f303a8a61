//! Argument completion for prompts and resource templates.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use roundtrip_core::wire::{CompleteRequestParams, CompleteResult, Completion};

/// Most values in one result, by the specification.
const MAX_VALUES: usize = 100;

/// An argument that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partial {
    /// The text typed so far.
    pub value: String,
    /// The other arguments, as far as they are known.
    pub arguments: BTreeMap<String, String>,
}

impl Partial {
    /// Returns the candidates that begin with the text typed so far.
    pub fn starting<'a>(&self, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        candidates
            .into_iter()
            .filter(|candidate| candidate.starts_with(&self.value))
            .map(str::to_owned)
            .collect()
    }
}

type Suggest = dyn Fn(Partial) -> Pin<Box<dyn Future<Output = Vec<String>> + Send>> + Send + Sync;

/// Completers by argument.
#[derive(Default)]
pub(crate) struct Completers(BTreeMap<String, Arc<Suggest>>);

impl Completers {
    pub(crate) fn add<F, Fut>(&mut self, argument: String, suggest: F)
    where
        F: Fn(Partial) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.0.insert(argument, Arc::new(move |partial| Box::pin(suggest(partial))));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn unknown<'a>(&'a self, known: &[&str]) -> Option<&'a str> {
        self.0.keys().map(String::as_str).find(|argument| !known.contains(argument))
    }

    /// Suggests values for one request; none for an argument without a completer.
    pub(crate) fn complete(
        &self,
        params: &CompleteRequestParams<'_>,
    ) -> impl Future<Output = CompleteResult> + Send + use<> {
        let known = params.context.iter().flat_map(|context| &context.arguments);
        let partial = Partial {
            value: params.argument.value.to_string(),
            arguments: known.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        };
        let suggest = self.0.get(&*params.argument.name).map(Arc::clone);
        async move {
            // Called when polled, where a panic of the author's code is caught (Z1).
            let mut values = match suggest {
                Some(suggest) => suggest(partial).await,
                None => Vec::new(),
            };
            let total = values.len();
            values.truncate(MAX_VALUES);
            let completion =
                Completion { has_more: Some(total > values.len()), total: u64::try_from(total).ok(), values };
            CompleteResult { completion, ..CompleteResult::default() }
        }
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

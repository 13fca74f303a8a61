//! Argument completion for prompts and resource templates.

use std::collections::BTreeMap;
use std::fmt;

use roundtrip_core::wire::{CompleteResult, Completion, ErrorObject};

use crate::server::handler::call::{Arguments, Call, Rejection, known};
use crate::server::handler::extract::FromCall;
use crate::server::handler::function::{BoxHandler, Function, Handler, Parameters, erase, needs_of};
use crate::server::handler::needs::Needs;
use crate::server::handler::reply::{IntoReply, Reply};

/// Most values in one result, by the specification.
const MAX_VALUES: usize = 100;

/// Extractor for an argument that is being typed, in completers.
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

impl FromCall for Partial {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let Arguments::Typed(typed) = &call.arguments else {
            return Err(ErrorObject::internal("only completers take `Partial`").into());
        };
        let arguments = known(typed).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { value: typed.argument.value.to_string(), arguments })
    }

    fn needs(needs: &mut Needs) {
        needs.typed = true;
    }
}

impl IntoReply<CompleteResult> for Vec<String> {
    fn into_reply(mut self, (): ()) -> Result<Reply<CompleteResult>, ErrorObject> {
        let total = self.len();
        self.truncate(MAX_VALUES);
        let has_more = Some(total > self.len());
        let completion = Completion { has_more, total: u64::try_from(total).ok(), values: self };
        Ok(Reply::complete(CompleteResult { completion, ..CompleteResult::default() }))
    }
}

/// Completers by argument.
#[derive(Default)]
pub(crate) struct Completers(BTreeMap<String, Completer>);

struct Completer {
    handler: BoxHandler<CompleteResult>,
    asks: bool,
}

impl Completers {
    /// Adds a completer, and its needs to those of its prompt or template.
    pub(crate) fn add<P: Parameters, F: Function<P> + Send + Sync>(
        &mut self,
        argument: String,
        suggest: F,
        needs: &mut Needs,
    ) where
        F::Output: IntoReply<CompleteResult>,
        F::Future: Send,
    {
        let own = needs_of::<P>();
        self.0.insert(argument, Completer { handler: erase(suggest), asks: own.asks.is_some() });
        needs.add_completer(own);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Describes a completer that is none of the known arguments', or that asks. `what` is the plural of such an argument.
    pub(crate) fn mistake(&self, known: &[&str], what: &str) -> Option<String> {
        let unknown = |argument: &String| !known.contains(&argument.as_str());
        self.0.iter().find_map(|(argument, completer)| match completer {
            _ if unknown(argument) => Some(format!("completes `{argument}`, which is not one of its {what}")),
            Completer { asks: true, .. } => Some(format!(
                "the completer of `{argument}` asks, which `completion/complete` does not allow"
            )),
            _ => None,
        })
    }

    /// Returns the completer of an argument.
    pub(crate) fn of(&self, argument: &str) -> Option<&dyn Handler<CompleteResult>> {
        self.0.get(argument).map(|completer| &*completer.handler)
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

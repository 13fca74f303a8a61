//! [`Resolved`]: parameters that functions of the author's resolve, and that ask only if they have to.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use roundtrip_core::wire::{ErrorObject, json};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask::Ask;
use super::call::{Call, Rejection};
use super::function::{Parameter, Parameters, ResolveFrom};
use super::needs::Needs;
use super::once;
use super::resolving::Resolving;
use super::tool_error::ToolError;

/// A value that a handler takes as a parameter ([`Resolved`]), and that an async function works out: from other parameters,
/// and from answers if it has to ask.
///
/// ```
/// use roundtrip::{Args, Ask, Resolve, Resolved, State, Tool, ToolError};
/// # use std::collections::HashMap;
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Delete { folder: String }
/// # type Folders = HashMap<String, u32>;
///
/// /// The user's permission to delete a folder. An empty one needs none.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Permitted(bool);
///
/// impl Resolve for Permitted {
///     const KEY: &'static str = "permitted";
///     type From = (Args<Delete>, State<Folders>);
///
///     async fn resolve((Args(delete), State(folders)): Self::From, ask: Ask) -> Result<Self, ToolError> {
///         let files = folders.get(&delete.folder).ok_or_else(|| ToolError::new("no such folder"))?;
///         Ok(Self(*files == 0 || ask.confirm("sure", format!("Delete {files} files?")).await?))
///     }
/// }
///
/// async fn delete(Args(delete): Args<Delete>, Resolved(Permitted(permitted)): Resolved<Permitted>) -> String {
///     format!("{}: {}", delete.folder, if permitted { "deleted" } else { "kept" })
/// }
/// # let _ = Tool::new("delete", delete);
/// ```
///
/// **A resolver runs to its end once a flow**: its value is remembered under its key, and later rounds read it. Until then
/// it runs as a handler does, again from the top with the answers it has, so effects belong into [`once`](Ask::once). A
/// failure ends the call, as `?` in the handler would.
pub trait Resolve: Serialize + DeserializeOwned + Send + 'static {
    /// The key that the value is remembered under: unique within a flow, as those of questions and steps are.
    const KEY: &'static str;

    /// The parameters it is resolved from: a tuple of what handlers take, [`Resolved`] values included. A call has one type of
    /// arguments, so `Args` are those of the handler.
    type From: ResolveFrom;

    /// Works out the value.
    ///
    /// # Errors
    /// Ends the call.
    fn resolve(from: Self::From, ask: Ask) -> impl Future<Output = Result<Self, ToolError>> + Send;
}

/// Extractor for a value that a function of its type works out: see [`Resolve`].
///
/// All such parameters of a handler, and its [`Asked`](crate::Asked) ones, run side by side before its body: what they ask
/// together takes one round, which waits until each of them asks or is done. One that several take is resolved once. Two types
/// of one key, and resolvers that need each other, are a [`SetupError`](crate::server::SetupError).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resolved<T>(pub T);

/// A value that is going to be resolved.
pub struct Unresolved<T>(Arc<Resolving>, PhantomData<fn() -> T>);

impl<T: Resolve> Parameter for Resolved<T> {
    type Taken = Unresolved<T>;
    const ASKS: bool = true;

    fn take(call: &mut Call<'_>) -> Result<Self::Taken, Rejection> {
        let resolver = TypeId::of::<T>();
        let resolving = match call.resolvers.share(resolver) {
            Some(shared) => shared,
            None => {
                let resolving = resolving::<T>(call)?;
                call.resolvers.add(resolver, resolving)
            }
        };
        Ok(Unresolved(resolving, PhantomData))
    }

    fn ready(_: Self::Taken) -> Option<Self> {
        None
    }

    async fn resolve(Unresolved(resolving, _): Self::Taken) -> Result<Self, ToolError> {
        Ok(Self(once::parse(T::KEY, resolving.value().await?)?))
    }

    fn needs(needs: &mut Needs) {
        needs.resolver::<T>(T::KEY, T::From::needs);
    }
}

/// Takes a resolver's value from the journal, or its parameters from the call.
fn resolving<T: Resolve>(call: &mut Call<'_>) -> Result<Resolving, Rejection> {
    let round = call.round_state()?;
    let remembered = round.recall_resolved(T::KEY).map_err(ErrorObject::from)?;
    // A type that has changed since is resolved anew, from the answers there are (A6).
    if let Some(value) = remembered.filter(|value| json::from_str::<T>(value).is_ok()) {
        return Ok(Resolving::remembered(value));
    }
    let outer = call.resolvers.enter(T::KEY);
    let from = T::From::take(call);
    let mut keys = call.resolvers.leave(outer);
    keys.push(T::KEY);
    let (from, keys) = (from?, Arc::<[_]>::from(keys));
    Ok(Resolving::new(Arc::clone(&keys), async move {
        let from = T::From::resolve(from).await?;
        let running = round.begin_resolver(T::KEY, keys)?;
        let value = T::resolve(from, Ask { round: Arc::clone(&round), branch: Some(T::KEY) }).await?;
        drop(running);
        once::keep(&round, T::KEY, &value).map(|(_, written)| written)
    }))
}

impl<T> fmt::Debug for Unresolved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unresolved").field(&self.0).finish()
    }
}

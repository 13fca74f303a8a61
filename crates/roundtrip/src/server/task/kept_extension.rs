//! [`KeptExtensions`]: extensions of a request that are stored with its task.

use std::any::{TypeId, type_name};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::Extensions;
use roundtrip_core::wire::{ErrorObject, Raw};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::resume::NotResumed;
use crate::server::outcome::panicked;

/// Types of extensions that are stored with a task, each under a name.
#[derive(Default)]
pub(crate) struct KeptExtensions(Vec<KeptExtension>);

struct KeptExtension {
    name: Cow<'static, str>,
    of: TypeId,
    of_name: &'static str,
    store: fn(&Extensions) -> Option<serde_json::Result<Raw>>,
    restore: fn(&Raw, &mut Extensions) -> serde_json::Result<()>,
}

impl KeptExtensions {
    pub(super) fn add<T>(&mut self, name: Cow<'static, str>)
    where
        T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.0.push(KeptExtension {
            name,
            of: TypeId::of::<T>(),
            of_name: type_name::<T>(),
            store: |extensions| extensions.get::<T>().map(Raw::of),
            restore: |stored, extensions| stored.to().map(|value: T| drop(extensions.insert(value))),
        });
    }

    pub(crate) fn types(&self) -> impl Iterator<Item = TypeId> {
        self.0.iter().map(|kept| kept.of)
    }

    /// Returns the mistake in the names and types, if there is one: each is there once.
    pub(crate) fn mistake(&self) -> Option<String> {
        self.0.iter().enumerate().find_map(|(at, kept)| {
            let other = self.0[..at].iter().find(|other| other.name == kept.name || other.of == kept.of)?;
            Some(format!(
                "its tasks keep `{}` as `{}` and `{}` as `{}`: keep each extension once, under a name of its own",
                other.of_name, other.name, kept.of_name, kept.name
            ))
        })
    }

    /// Returns the values to store with the task of a request. One that the request does not have is left out: the handler that
    /// takes it has refused the call.
    pub(crate) fn stored(&self, extensions: &Extensions) -> Result<BTreeMap<String, Raw>, ErrorObject> {
        let mut stored = BTreeMap::new();
        for kept in &self.0 {
            let value = by_author(|| (kept.store)(extensions).transpose());
            let value = value.map_err(|error| kept.refused(error, "cannot be stored"))?;
            stored.extend(value.map(|value| (kept.name.clone().into_owned(), value)));
        }
        Ok(stored)
    }

    /// Returns the name of an extension that was not stored with a task: its request had none, or an earlier version did not keep it.
    pub(crate) fn missing(&self, stored: &BTreeMap<String, Raw>) -> Option<&str> {
        self.0.iter().map(|kept| &*kept.name).find(|name| !stored.contains_key(*name))
    }

    /// Returns the extensions of a task's request. A name that is not known any more is left out, as is one that was not then. A
    /// value of another type leaves the task to other processes; a panic of the author's code ends it.
    pub(crate) fn restored(&self, stored: &BTreeMap<String, Raw>) -> Result<Extensions, NotResumed> {
        let mut extensions = Extensions::new();
        for kept in &self.0 {
            if let Some(value) = stored.get(&*kept.name) {
                by_author(|| (kept.restore)(value, &mut extensions)).map_err(|error| {
                    let panicked = error.is_none();
                    let refused = kept.refused(error, "cannot be read any more");
                    if panicked {
                        NotResumed::Failed(refused)
                    } else {
                        NotResumed::Misfit(refused.message.into_owned())
                    }
                })?;
            }
        }
        Ok(extensions)
    }
}

impl KeptExtension {
    /// Returns the error of a value that does not go into the store or come out of it. The reason may quote the value, and is for
    /// the log.
    fn refused(&self, error: Option<serde_json::Error>, what: &str) -> ErrorObject {
        let Some(error) = error else { return panicked() };
        tracing::error!(%error, extension = &*self.name, "an extension of a task {what}");
        ErrorObject::internal(format!("the extension `{}` of the task {what}", self.name))
    }
}

/// Runs the author's code for a value. A panic of it is this task's problem alone (Z1), and has no error.
fn by_author<T>(run: impl FnOnce() -> serde_json::Result<T>) -> Result<T, Option<serde_json::Error>> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| None)?.map_err(Some)
}

impl fmt::Debug for KeptExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|kept| &kept.name)).finish()
    }
}

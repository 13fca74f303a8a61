//! Requests before they have an id, a version and a transport.

use std::borrow::Cow;

use roundtrip_core::error::{ApiMisuse, Error, RequestName};
use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{Raw, RequestMeta};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

/// Method and its parameters, without `_meta`, which is made anew for every message.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    params: Cow<'a, Params>,
    /// Target that errors name in place of the request's own.
    subject: Option<String>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'static str) -> Self {
        Self { method, params: Cow::default(), subject: None }
    }

    /// Builds a request that borrows its parameters.
    pub(crate) fn borrowing(method: &'static str, params: &'a Params) -> Self {
        Self { method, params: Cow::Borrowed(params), subject: None }
    }

    /// Sets the target that errors name in place of the request's own.
    pub(crate) fn about(mut self, subject: Option<String>) -> Self {
        self.subject = subject;
        self
    }

    /// Builds a request with parameters given as any value that serialises to an object; null counts as an empty one.
    pub(crate) fn with_params(method: &'static str, params: &impl Serialize) -> Result<Self, Error> {
        let mut request = Self::new(method);
        let params = object(params, "the parameters of a request")?;
        let Some(params) = params else { return Ok(request) };
        let params: Params = params.to().map_err(|error| misuse("the parameters of a request", &error))?;
        if params.get("_meta").is_some() {
            let why = "`_meta` is filled in by the client: use `.meta(key, value)`";
            return Err(ApiMisuse::ReservedMeta(why.to_owned()).into());
        }
        request.params = Cow::Owned(params);
        Ok(request)
    }

    /// Sets a member; `None` removes it.
    pub(crate) fn set(&mut self, name: &'static str, value: Option<Raw>) {
        self.params.to_mut().set(name, value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Raw> {
        self.params.get(name)
    }

    /// Returns the names of all members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.params.iter().map(|(name, _)| name)
    }

    /// Returns the target: a tool or prompt by name, a resource by URI, a task by id.
    pub(crate) fn target(&self) -> Option<String> {
        self.params.target(self.method)
    }

    /// Returns the name of the request, for errors.
    pub(crate) fn name(&self) -> RequestName {
        RequestName::new(self.method, self.subject.clone().or_else(|| self.target()))
    }

    /// Returns the parameters.
    pub(crate) fn into_params(self) -> Params {
        self.params.into_owned()
    }

    /// Returns the parameters with `_meta`, as they go out.
    pub(crate) fn with_meta<'b>(&'b self, meta: RequestMeta<'b>) -> impl Serialize + 'b {
        WithMeta { meta, params: &self.params }
    }
}

struct WithMeta<'a> {
    meta: RequestMeta<'a>,
    params: &'a Params,
}

impl Serialize for WithMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.params.len() + 1))?;
        map.serialize_entry("_meta", &self.meta)?;
        for (name, value) in self.params.iter() {
            map.serialize_entry(name, AsRef::<RawValue>::as_ref(value))?;
        }
        map.end()
    }
}

/// Serialises a value that must be a JSON object; none where it is null.
pub(crate) fn object(value: &impl Serialize, what: &str) -> Result<Option<Raw>, Error> {
    let raw = Raw::of(value).map_err(|error| misuse(what, &error))?;
    match raw.get().as_bytes().first() {
        Some(b'{') => Ok(Some(raw)),
        Some(b'n') => Ok(None),
        _ => Err(ApiMisuse::Unserializable(format!("{what} must be an object")).into()),
    }
}

/// Serialises a value.
pub(crate) fn raw(value: &(impl Serialize + ?Sized), what: &str) -> Result<Raw, Error> {
    Raw::of(value).map_err(|error| misuse(what, &error))
}

/// Serialises a string among the parameters.
pub(crate) fn text(value: &str) -> Result<Option<Raw>, Error> {
    raw(value, "a string").map(Some)
}

fn misuse(what: &str, error: &serde_json::Error) -> Error {
    ApiMisuse::Unserializable(format!("{what} must serialise: {error}")).into()
}

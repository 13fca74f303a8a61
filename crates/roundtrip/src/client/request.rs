//! What is asked of a server, before it has an id, a version or a way to travel.

use std::borrow::Cow;

use roundtrip_core::error::Error;
use roundtrip_core::wire::{CallTool, GetPrompt, Method as _, Raw, ReadResource, RequestMeta};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

/// A method and its parameters, `_meta` left out: that is made anew for every message.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    members: Vec<(Cow<'static, str>, Raw)>,
}

impl Request {
    pub(crate) fn new(method: &'static str) -> Self {
        Self { method, members: Vec::new() }
    }

    /// Parameters given as any value that serialises to an object; null counts as an empty one.
    pub(crate) fn with_params(method: &'static str, params: &impl Serialize) -> Result<Self, Error> {
        let mut request = Self::new(method);
        let params = object(params, "the parameters of a request")?;
        let Some(params) = params else { return Ok(request) };
        let members: std::collections::BTreeMap<String, Raw> =
            params.to().map_err(|error| misuse("the parameters of a request", &error))?;
        if members.contains_key("_meta") {
            return Err(Error::ApiMisuse(
                "`_meta` is filled in by the client: use `.meta(key, value)`".into(),
            ));
        }
        request.members = members.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect();
        Ok(request)
    }

    /// Sets a member; none takes it away.
    pub(crate) fn set(&mut self, name: &'static str, value: Option<Raw>) {
        self.members.retain(|(member, _)| member != name);
        self.members.extend(value.map(|value| (Cow::Borrowed(name), value)));
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Raw> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The names of all members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    /// A tool or prompt by name, a resource by URI, a task by id.
    pub(crate) fn target(&self) -> Option<String> {
        let member = match self.method {
            CallTool::NAME | GetPrompt::NAME => "name",
            ReadResource::NAME => "uri",
            other if other.starts_with("tasks/") => "taskId",
            _ => return None,
        };
        self.get(member).and_then(|target| target.to().ok())
    }

    /// The parameters as they go out.
    pub(crate) fn params<'a>(&'a self, meta: RequestMeta<'a>) -> impl Serialize + 'a {
        Params { meta, members: &self.members }
    }
}

struct Params<'a> {
    meta: RequestMeta<'a>,
    members: &'a [(Cow<'static, str>, Raw)],
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len() + 1))?;
        map.serialize_entry("_meta", &self.meta)?;
        for (name, value) in self.members {
            map.serialize_entry(name, AsRef::<RawValue>::as_ref(value))?;
        }
        map.end()
    }
}

/// Any value as a JSON object; none where it is null.
pub(crate) fn object(value: &impl Serialize, what: &str) -> Result<Option<Raw>, Error> {
    let raw = Raw::of(value).map_err(|error| misuse(what, &error))?;
    match raw.get().as_bytes().first() {
        Some(b'{') => Ok(Some(raw)),
        Some(b'n') => Ok(None),
        _ => Err(Error::ApiMisuse(format!("{what} must be an object"))),
    }
}

/// Any value as JSON.
pub(crate) fn raw(value: &(impl Serialize + ?Sized), what: &str) -> Result<Raw, Error> {
    Raw::of(value).map_err(|error| misuse(what, &error))
}

fn misuse(what: &str, error: &serde_json::Error) -> Error {
    Error::ApiMisuse(format!("{what} must serialise: {error}"))
}

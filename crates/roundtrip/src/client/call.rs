//! A call being put together; awaiting it makes it.

use std::marker::PhantomData;

use roundtrip_core::error::Error;
use roundtrip_core::wire::{Complete, Discover, GetPrompt, Method, Raw, ReadResource};

use super::builder::Client;
use super::exchange;
use super::options::{Options, options};
use super::request::{Request, raw};
use super::transport::BoxFuture;

/// A call of a method, to be awaited for its result.
#[derive(Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<M> {
    client: Client,
    request: Request,
    options: Options,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Call<M> {
    /// `build` fills in the parameters; what goes wrong there is reported when the call is awaited.
    pub(crate) fn new(client: &Client, build: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        let mut request = Request::new(M::NAME);
        let mut options = Options::default();
        if let Err(error) = build(&mut request) {
            options.fail(error);
        }
        Self { client: client.clone(), request, options, method: PhantomData }
    }

    options!();

    /// Sets a member of an object among the parameters.
    fn entry(mut self, member: &'static str, path: &[&str], key: String, value: String) -> Self {
        let mut object = self.request.get(member).map_or_else(|| serde_json::json!({}), Raw::to_value);
        let place = path.iter().fold(&mut object, |place, step| &mut place[*step]);
        place[key] = value.into();
        self.request.set(member, Some(object.into()));
        self
    }
}

impl<M: Method> IntoFuture for Call<M> {
    type Output = Result<M::Result, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, request, mut options, .. } = self;
        Box::pin(async move { exchange::call::<M>(&client, &request, &mut options).await })
    }
}

impl Call<GetPrompt> {
    /// Fills one of the prompt's gaps.
    pub fn argument(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.entry("arguments", &[], name.into(), value.into())
    }
}

impl Call<Complete> {
    /// Says which value another argument has already.
    pub fn context(self, argument: impl Into<String>, value: impl Into<String>) -> Self {
        self.entry("context", &["arguments"], argument.into(), value.into())
    }
}

impl Call<Discover> {
    /// Asks the server even where the last answer is still fresh.
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }
}

impl Call<ReadResource> {
    /// Asks the server even where the last answer is still fresh.
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }
}

/// A string among the parameters.
pub(crate) fn text(value: &str) -> Result<Option<Raw>, Error> {
    raw(value, "a string").map(Some)
}

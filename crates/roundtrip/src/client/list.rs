//! Lists, page by page or all at once.

use std::fmt;
use std::time::Duration;

use roundtrip_core::error::Error;
use roundtrip_core::wire::{
    BareTask, ListPrompts, ListResourceTemplates, ListResources, ListTasks, ListTools, Method, Prompt,
    Resource, ResourceTemplate, Tool,
};

use super::builder::Client;
use super::list_bounds::ListBounds;
use super::options::{Options, options};
use super::request::{Request, text};
use super::send;
use super::transport::BoxFuture;

/// A method that lists something, page by page.
pub trait Listing: Method + sealed::Page {
    /// Entry of the list.
    type Item: Send + 'static;
}

mod sealed {
    use super::{Client, Listing, Method};

    pub trait Page: Method {
        /// Splits a page, which was asked for with these credentials, into its valid entries and the cursor of the next page.
        fn split(client: &Client, page: Self::Result, credentials: u64) -> (Vec<Self::Item>, Option<String>)
        where
            Self: Listing;
    }
}

macro_rules! listings {
    ($($method:ident: $member:ident => $item:ident $(, $check:expr)?;)*) => {
        $(
            impl Listing for $method {
                type Item = $item;
            }
            impl sealed::Page for $method {
                fn split(
                    _client: &Client,
                    page: Self::Result,
                    _credentials: u64,
                ) -> (Vec<$item>, Option<String>) {
                    let items = page.$member;
                    $(let items = $check(_client, items, _credentials);)?
                    (items, page.next_cursor)
                }
            }
        )*
    };
}

listings! {
    ListTools: tools => Tool, known_tools;
    ListPrompts: prompts => Prompt;
    ListResources: resources => Resource;
    ListResourceTemplates: resource_templates => ResourceTemplate;
    ListTasks: tasks => BareTask;
}

/// Headers and output schemas of listed tools are remembered. Where arguments are mirrored in headers, a tool with
/// invalid annotations is left out (H3).
fn known_tools(client: &Client, mut tools: Vec<Tool>, credentials: u64) -> Vec<Tool> {
    let has_headers = client.transport().has_headers();
    // A list that was asked for with earlier credentials is not remembered for these.
    client.tools().forget_earlier();
    tools.retain(|tool| client.tools_of(credentials).learn(tool, has_headers));
    tools
}

/// Call of a list: awaited it gives all entries, by way of [`pages`](Self::pages) one page at a time.
///
/// Awaited, all pages together have the time that [`timeout`](Self::timeout) says. However it is read, a list has an end:
/// [`ClientLimits`](super::ClientLimits) says where.
#[derive(Debug)]
#[must_use = "a list does nothing until it is awaited"]
pub struct List<M> {
    client: Client,
    options: Options,
    method: std::marker::PhantomData<fn() -> M>,
}

impl<M: Listing> List<M> {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), options: Options::default(), method: std::marker::PhantomData }
    }

    options!();

    /// Asks the server even where the last answer is still fresh.
    pub fn fresh(mut self) -> Self {
        self.options.fresh = true;
        self
    }

    /// Reads one page at a time. Each has the time that [`timeout`](Self::timeout) says.
    pub fn pages(self) -> Pages<M> {
        Pages {
            bounds: ListBounds::new(M::NAME, self.client.client_limits()),
            client: self.client,
            options: self.options,
            request: Some(Request::new(M::NAME)),
            method: self.method,
        }
    }
}

impl<M: Listing> IntoFuture for List<M> {
    type Output = Result<Vec<M::Item>, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let timeout = self.client.timeout_of(&self.options);
        Box::pin(async move {
            let mut pages = self.pages();
            let mut all = Vec::new();
            while let Some(page) = pages.next_of(timeout).await {
                all.append(&mut page?);
            }
            Ok(all)
        })
    }
}

/// The pages of a list.
#[must_use = "pages do nothing until they are asked for"]
pub struct Pages<M> {
    client: Client,
    options: Options,
    /// Request for the next page; none after the last one.
    request: Option<Request<'static>>,
    bounds: ListBounds,
    method: std::marker::PhantomData<fn() -> M>,
}

impl<M: Listing> Pages<M> {
    /// Returns the next page; none after the last one, and after an error.
    pub async fn next(&mut self) -> Option<Result<Vec<M::Item>, Error>> {
        let request = self.request.take()?;
        Some(self.page(request).await)
    }

    /// Returns the next page, of all that share one timeout. Time in which a person signs in is not counted.
    async fn next_of(&mut self, timeout: Duration) -> Option<Result<Vec<M::Item>, Error>> {
        self.options.timeout = Some(timeout.saturating_sub(self.options.waited));
        let page = self.next().await?;
        Some(page.map_err(|error| match error {
            Error::Timeout { request, .. } => Error::timeout(request, timeout),
            other => other,
        }))
    }

    async fn page(&mut self, mut request: Request<'static>) -> Result<Vec<M::Item>, Error> {
        self.bounds.next_page()?;
        self.options.reset_progress();
        let (page, credentials) = send::fetch_as(&self.client, &request, &mut self.options).await?;
        self.bounds.read(&page)?;
        let (found, cursor) = M::split(&self.client, send::complete::<M>(&page)?, credentials);
        self.bounds.found(found.len(), cursor.as_deref())?;
        if let Some(cursor) = cursor {
            request.set("cursor", text(&cursor)?);
            self.request = Some(request);
        }
        Ok(found)
    }
}

impl<M> fmt::Debug for Pages<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("next", &self.request).finish_non_exhaustive()
    }
}

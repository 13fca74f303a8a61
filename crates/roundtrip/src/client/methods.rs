//! The protocol's methods, as calls.

use roundtrip_core::wire::{
    CallTool, Complete, CompletionArgument, CompletionReference, Discover, GetPrompt, ListPrompts,
    ListResourceTemplates, ListResources, ListTasks, ListTools, Method, PromptReference, ReadResource,
    ResourceTemplateReference,
};
use serde::Serialize;

use super::builder::Client;
use super::call::Call;
use super::list::List;
use super::listen::Listen;
use super::request::{Request, object, raw, text};

impl Client {
    /// Asks for the server's name, versions and capabilities (`server/discover`).
    pub fn discover(&self) -> Call<Discover> {
        Call::new(self, |_| Ok(()))
    }

    /// Lists the tools. On HTTP, tools whose header annotations are invalid are left out, with a warning.
    pub fn list_tools(&self) -> List<ListTools> {
        List::new(self)
    }

    /// Lists the prompts.
    pub fn list_prompts(&self) -> List<ListPrompts> {
        List::new(self)
    }

    /// Lists the resources.
    pub fn list_resources(&self) -> List<ListResources> {
        List::new(self)
    }

    /// Lists the resource templates.
    pub fn list_resource_templates(&self) -> List<ListResourceTemplates> {
        List::new(self)
    }

    /// Lists the caller's tasks, where the server has a list: in SEP-2322's dialect and at 2025-11-25. The extension has none.
    /// [`Task::new`](super::Task::new) makes a handle of an entry.
    pub fn list_tasks(&self) -> List<ListTasks> {
        List::new(self)
    }

    /// Runs a tool. The arguments are anything that serialises to an object: `json!({ .. })`, a struct of yours,
    /// or `()` for none.
    ///
    /// A tool that fails is a result too, with `is_error` set: the model is meant to see it.
    ///
    /// A server may answer with a task. The call then goes on until the task ends: it is looked at as often as the server says, and
    /// its questions go to the handlers. [`timeout`](Call::timeout) is for each request of this, so it does not bound the
    /// task: [`deadline`](Call::deadline) does, and the task's own time to live. Dropping the call, or its deadline, leaves the
    /// task as it is; [`into_task`](Call::into_task) gives it to you, to be cancelled too.
    pub fn call_tool(&self, name: impl AsRef<str>, arguments: impl Serialize) -> Call<CallTool> {
        Call::new(self, |request| {
            request.set("name", text(name.as_ref())?);
            request.set("arguments", object(&arguments, "the arguments of a tool")?);
            Ok(())
        })
    }

    /// Fills in a prompt: chain [`argument`](Call::argument) for each of its gaps.
    pub fn get_prompt(&self, name: impl AsRef<str>) -> Call<GetPrompt> {
        Call::new(self, |request| {
            request.set("name", text(name.as_ref())?);
            Ok(())
        })
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl AsRef<str>) -> Call<ReadResource> {
        Call::new(self, |request| {
            request.set("uri", text(uri.as_ref())?);
            Ok(())
        })
    }

    /// Asks for suggestions for an argument of a prompt, given the text typed so far. Set the arguments that are known
    /// already with [`context`](Call::context).
    pub fn complete_prompt(
        &self,
        prompt: impl AsRef<str>,
        argument: impl AsRef<str>,
        typed: impl AsRef<str>,
    ) -> Call<Complete> {
        let prompt = PromptReference { name: prompt.as_ref().into(), title: None };
        self.complete(&CompletionReference::Prompt(prompt), argument.as_ref(), typed.as_ref())
    }

    /// Asks for suggestions for a variable of a resource template, given the text typed so far.
    pub fn complete_resource(
        &self,
        uri_template: impl AsRef<str>,
        variable: impl AsRef<str>,
        typed: impl AsRef<str>,
    ) -> Call<Complete> {
        let template = ResourceTemplateReference { uri: uri_template.as_ref().into() };
        self.complete(&CompletionReference::Resource(template), variable.as_ref(), typed.as_ref())
    }

    fn complete(&self, reference: &CompletionReference<'_>, name: &str, value: &str) -> Call<Complete> {
        let argument = CompletionArgument { name: name.into(), value: value.into() };
        Call::new(self, |request| {
            request.set("ref", Some(raw(reference, "a reference")?));
            request.set("argument", Some(raw(&argument, "an argument")?));
            Ok(())
        })
    }

    /// Subscribes to changes, named one by one; awaited, it opens the stream.
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client) -> Result<(), roundtrip::Error> {
    /// let mut changes = client.listen().tools().resource("app://motto").await?;
    /// while let Some(change) = changes.next().await {
    ///     println!("{:?}", change?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn listen(&self) -> Listen {
        Listen::new(self)
    }

    /// Calls any method, with parameters that serialise to an object (`_meta` is filled in by the client): the way
    /// out for extensions, and for parameters that have no builder here.
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client) -> Result<(), roundtrip::Error> {
    /// use roundtrip::wire::ListTools;
    /// let page = client.request::<ListTools>(serde_json::json!({ "cursor": "abc" })).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request<M: Method>(&self, params: impl Serialize) -> Call<M> {
        Call::new(self, |request| {
            *request = Request::with_params(M::NAME, &params)?;
            Ok(())
        })
    }
}

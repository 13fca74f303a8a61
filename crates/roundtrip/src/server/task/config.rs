//! Settings of a server's tasks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::dialect::Sep2322;
use super::kept_extension::KeptExtensions;
use crate::task::{TaskStore, TaskStoreHandle};

/// Tasks of a server: their store, and what is allowed.
///
/// ```
/// use std::time::Duration;
/// use roundtrip::{MemoryTasks, Server, Tasks, Tool, When};
///
/// let server = Server::new("reports", "1.0.0")
///     .tool(Tool::new("report", async || "all is well").task(When::After(Duration::from_secs(5))))
///     .tasks(Tasks::new(MemoryTasks::new()).keep_for(Duration::from_secs(3600)));
/// # server.build().unwrap();
/// ```
#[must_use = "tasks do nothing until they are given to a server"]
pub struct Tasks {
    pub(crate) store: TaskStoreHandle,
    pub(crate) ttl: Duration,
    pub(crate) per_caller: usize,
    pub(crate) at_once: usize,
    pub(crate) lease: Duration,
    pub(crate) sep_2322: Sep2322,
    pub(crate) extensions: KeptExtensions,
}

impl Tasks {
    /// Creates the settings of tasks in a store.
    pub fn new(store: impl TaskStore + 'static) -> Self {
        Self {
            store: TaskStoreHandle(Arc::new(store)),
            ttl: Duration::from_secs(24 * 60 * 60),
            per_caller: 1_000,
            at_once: 64,
            lease: Duration::from_secs(30),
            sep_2322: Sep2322::Off,
            extensions: KeptExtensions::default(),
        }
    }

    /// Sets how long a task is kept from its creation on, whether it has ended or not. The default is a day.
    pub fn keep_for(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how many live tasks one caller may have. The default is 1,000.
    pub fn per_caller(mut self, tasks: usize) -> Self {
        self.per_caller = tasks;
        self
    }

    /// Sets how many tasks this process works on at once. The default is 64; with 0 it works on none, and leaves them to the
    /// workers of other processes. A call that would become a task while there is no place for it
    /// ([`When::After`](crate::When::After)) is left to a worker between two of its steps, and is replayed there; one whose
    /// handler cannot ask, and so has no journal, goes on as a call.
    pub fn at_once(mut self, tasks: usize) -> Self {
        self.at_once = tasks;
        self
    }

    /// Sets how long a process has a task for itself before it has to say that it is still at it. A task whose process has died is
    /// taken up by another after this time. The default is 30 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Stores an extension of the request with its task, so that handlers of tasks can take it as
    /// [`Extension<T>`](crate::Extension) in any process. The name is that in the store: leave it as it is while there are tasks.
    ///
    /// ```
    /// use roundtrip::{Extension, MemoryTasks, Server, Tasks, Tool, When};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct Tenant { id: u64 }
    ///
    /// async fn report(Extension(tenant): Extension<Tenant>) -> String {
    ///     format!("all is well at tenant {}", tenant.id)
    /// }
    ///
    /// let server = Server::new("reports", "1.0.0")
    ///     .tool(Tool::new("report", report).task(When::Offered))
    ///     .tasks(Tasks::new(MemoryTasks::new()).keep_extension::<Tenant>("tenant"));
    /// # server.build().unwrap();
    /// ```
    pub fn keep_extension<T>(mut self, name: impl Into<Cow<'static, str>>) -> Self
    where
        T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.extensions.add::<T>(name.into());
        self
    }

    /// Serves tasks as SEP-2322 describes them, too: `task` of `tools/call`, `tasks/result`, `tasks/input_response`. This is for
    /// requests that declare `dev.roundtrip/tasks-sep-2322` among their extensions; those that declare the tasks extension keep
    /// to it.
    pub fn sep_2322(mut self) -> Self {
        self.sep_2322 = Sep2322::Declared;
        self
    }

    /// Serves tasks as SEP-2322 describes them to requests that declare neither extension, too: for clients that were written
    /// from the SEP alone.
    pub fn undeclared(mut self) -> Self {
        self.sep_2322 = Sep2322::Undeclared;
        self
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("ttl", &self.ttl)
            .field("per_caller", &self.per_caller)
            .field("at_once", &self.at_once)
            .field("lease", &self.lease)
            .field("sep_2322", &self.sep_2322)
            .field("extensions", &self.extensions)
            .finish_non_exhaustive()
    }
}

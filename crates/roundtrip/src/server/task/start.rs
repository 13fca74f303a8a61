//! Starts what works on the tasks of a server.

use std::sync::{Arc, Weak};

use tokio::runtime::Handle;

use super::adoption::adopt_all;
use super::announcing::announce;
use super::resume::Resume;
use super::service::TaskService;
use super::sweep::sweeps;
use super::worker::{hear, work};

impl TaskService {
    /// Starts the workers, if there is a runtime; otherwise with the first task.
    pub(crate) fn start(self: &Arc<Self>, server: Weak<dyn Resume>) {
        // Set once: a server starts once.
        let _ = self.resume.set(server);
        self.ensure_works();
    }

    /// Starts the workers, unless they have been.
    pub(crate) fn ensure_works(self: &Arc<Self>) {
        if self.works.get().is_some() {
            return;
        }
        if let Ok(runtime) = Handle::try_current()
            && self.works.set(()).is_ok()
        {
            runtime.spawn(work(Arc::downgrade(self)));
            runtime.spawn(hear(Arc::downgrade(self)));
            runtime.spawn(announce(Arc::downgrade(self)));
            runtime.spawn(adopt_all(Arc::downgrade(self)));
            let own = Arc::downgrade(self);
            let swept = move || {
                own.upgrade().filter(|own| own.has_server()).map(|own| (own.store.clone(), own.service))
            };
            runtime.spawn(sweeps(swept));
        }
    }
}

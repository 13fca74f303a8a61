//! Stores that have tasks are task stores.

/// Implements `TaskStore` for a store that has tasks.
macro_rules! tasks_of {
    ($store:ident) => {
        const _: () = {
            use bytes::Bytes;
            use roundtrip::seal::Digest;
            use roundtrip::task::{
                AdoptedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask,
                StoredView, TakeRequest, TakenTask, TaskAnswer, TaskChange, TaskChanges, TaskId, TaskKey,
                TaskOwner, TaskStore, TaskWork, Waiting,
            };

            impl TaskStore for $store {
                fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
                    self.tasks.create(task, most, now)
                }

                fn view<'a>(
                    &'a self,
                    key: &'a TaskKey,
                    with_result: bool,
                    now: Millis,
                ) -> TaskAnswer<'a, Option<StoredView>> {
                    self.tasks.view(key, with_result, now)
                }

                fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
                    self.tasks.read(key, now)
                }

                fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>> {
                    self.tasks.load(key)
                }

                fn parts<'a>(
                    &'a self,
                    key: &'a TaskKey,
                    from: u32,
                    most: usize,
                ) -> TaskAnswer<'a, Vec<Chunk>> {
                    self.tasks.parts(key, from, most)
                }

                fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
                    self.tasks.write(change, now)
                }

                fn append<'a>(
                    &'a self,
                    key: &'a TaskKey,
                    fence: u64,
                    pieces: &'a [Chunk],
                ) -> TaskAnswer<'a, bool> {
                    self.tasks.append(key, fence, pieces)
                }

                fn waiting<'a>(
                    &'a self,
                    service: &'a Digest,
                    kinds: &'a [Digest],
                    after: Option<Waiting>,
                    most: usize,
                    now: Millis,
                ) -> TaskAnswer<'a, Vec<Waiting>> {
                    self.tasks.waiting(service, kinds, after, most, now)
                }

                fn take<'a>(
                    &'a self,
                    request: TakeRequest<'a>,
                    now: Millis,
                ) -> TaskAnswer<'a, Vec<TakenTask>> {
                    self.tasks.take(request, now)
                }

                fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()> {
                    self.tasks.give_back(key, fence, now)
                }

                fn renewer(&self) -> Box<dyn LeaseRenewer> {
                    self.tasks.renewer()
                }

                fn expired<'a>(
                    &'a self,
                    service: &'a Digest,
                    now: Millis,
                    most: usize,
                ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
                    self.tasks.expired(service, now, most)
                }

                fn remove<'a>(
                    &'a self,
                    service: &'a Digest,
                    tasks: &'a [(TaskId, u64)],
                ) -> TaskAnswer<'a, ()> {
                    self.tasks.remove(service, tasks)
                }

                fn list<'a>(
                    &'a self,
                    service: &'a Digest,
                    owner: &'a TaskOwner,
                    after: Option<&'a TaskId>,
                    most: usize,
                ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
                    self.tasks.list(service, owner, after, most)
                }

                fn changes(&self) -> Box<dyn TaskChanges> {
                    self.tasks.changes()
                }

                fn orphans<'a>(
                    &'a self,
                    after: Option<&'a TaskId>,
                    most: usize,
                ) -> TaskAnswer<'a, Vec<OrphanTask>> {
                    self.tasks.orphans(after, most)
                }

                fn remove_orphans(&self, now: Millis, most: usize) -> TaskAnswer<'_, usize> {
                    self.tasks.remove_orphans(now, most)
                }

                fn orphan<'a>(
                    &'a self,
                    owner: &'a TaskOwner,
                    id: &'a TaskId,
                ) -> TaskAnswer<'a, Option<OrphanTask>> {
                    self.tasks.orphan(owner, id)
                }

                fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
                    self.tasks.adopt(task)
                }
            }
        };
    };
}

pub(crate) use tasks_of;

//! The contract of stores of tasks.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Digest};
use tokio::task::JoinSet;

use super::{Checked, broken, failed, random, within};
use crate::task::{Millis, StoredTask, TaskId, TaskOwner, TaskStore, TaskStoreError};

/// More than any account here has.
const MANY: usize = 1_000;

/// Checks that a store of tasks keeps its contract: what was stored is read as it was, on both instances and by its owner alone; of
/// changes to one version one counts; a task that is due goes to one worker; the live tasks of an account are counted exactly;
/// changes are heard of.
///
/// It takes two instances that share one store: two connections to one database; two handles, if it is for one process. No worker may
/// be at work on it. Other tasks are left alone, because the times of these are those of 1970.
///
/// # Errors
/// Fails with the first rule that the store breaks.
pub async fn tasks(one: impl TaskStore + 'static, other: impl TaskStore + 'static) -> Checked {
    let instances: [Instance; 2] = [Arc::new(one), Arc::new(other)];
    a_task_is_kept_as_it_was(&instances).await?;
    a_task_is_its_owners(&instances).await?;
    a_task_is_there_once(&instances).await?;
    of_changes_to_a_version_one_counts(&instances).await?;
    due_tasks_are_taken_in_order(&instances).await?;
    a_lease_ends(&instances).await?;
    a_task_goes_to_one_worker(&instances).await?;
    expired_tasks_are_found_and_removed(&instances).await?;
    tasks_are_listed_by_their_identifiers(&instances).await?;
    live_tasks_are_counted(&instances).await?;
    live_tasks_are_counted_exactly(&instances).await?;
    changes_are_heard_of(&instances).await
}

type Instance = Arc<dyn TaskStore>;

async fn a_task_is_kept_as_it_was([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a task is read as it was stored, on every instance";
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let long = vec![b'x'; 1 << 20];
    let (none, short, all, long) = (&b""[..], &b"{}"[..], &all[..], &long[..]);
    for (view, work) in [(short, none), (all, long), (none, all), (long, short)] {
        let mut task = new_task()?;
        (task.version, task.fence, task.is_live) = (7, 3, view.len() % 2 == 0);
        (task.due, task.expires) = (Some(Millis(1_900)), (work.len() > 4).then_some(Millis(1_901)));
        (task.view, task.work) = (Bytes::copy_from_slice(view), Bytes::copy_from_slice(work));
        create(rule, one, &task, MANY).await?;
        for instance in [one, other] {
            stored(rule, instance, &task).await?;
        }
        (task.due, task.expires, task.fence) = (None, Some(Millis(1_950)), 4);
        std::mem::swap(&mut task.view, &mut task.work);
        write(rule, other, &mut task).await?;
        for instance in [one, other] {
            stored(rule, instance, &task).await?;
        }
        remove(rule, one, &task).await?;
    }
    Ok(())
}

async fn a_task_is_its_owners([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a task is found by its owner alone";
    let task = new_task()?;
    create(rule, one, &task, MANY).await?;
    let stranger = new_owner()?;
    for instance in [one, other] {
        for (owner, id) in [(stranger, task.id.clone()), (task.owner, TaskId::new(random()?))] {
            let view = asked(rule, instance.view(&owner, &id)).await?;
            let read = asked(rule, instance.read(&owner, &id)).await?;
            if view.is_some() || read.is_some() {
                return broken(rule, "another's task, or one that is not there, is returned".into());
            }
        }
        if !asked(rule, instance.list(&stranger, None, MANY)).await?.is_empty() {
            return broken(rule, "another's task is listed".into());
        }
    }
    remove(rule, other, &task).await
}

async fn a_task_is_there_once([one, other]: &[Instance; 2]) -> Checked {
    let rule = "a task that is created again, because the answer was lost, is there once";
    let mut task = new_task()?;
    create(rule, one, &task, 1).await?;
    write(rule, one, &mut task).await?;
    for instance in [one, other] {
        let again = StoredTask { version: 0, view: Bytes::from_static(b"again"), ..task.clone() };
        create(rule, instance, &again, 1).await?;
        stored(rule, instance, &task).await?;
    }
    remove(rule, one, &task).await
}

async fn of_changes_to_a_version_one_counts([one, other]: &[Instance; 2]) -> Checked {
    let rule = "of changes to one version of a task one counts, and the others are told";
    let mut task = new_task()?;
    create(rule, one, &task, MANY).await?;
    let mut writers = JoinSet::new();
    for number in 0..16u8 {
        let instance = Arc::clone(if number % 2 == 0 { one } else { other });
        let change = StoredTask { work: Bytes::copy_from_slice(&[number]), ..task.clone() };
        writers.spawn(async move {
            let work = change.work.clone();
            Ok(asked(rule, instance.write(change)).await?.then_some(work))
        });
    }
    let mut written = Vec::new();
    while let Some(writer) = writers.join_next().await {
        written.extend(writer.unwrap_or_else(|error| broken(rule, error.to_string()))?);
    }
    let [work] = &written[..] else { return broken(rule, format!("{} counted", written.len())) };
    (task.version, task.work) = (task.version + 1, work.clone());
    for instance in [one, other] {
        stored(rule, instance, &task).await?;
        let stale = StoredTask { version: task.version - 1, ..task.clone() };
        if asked(rule, instance.write(stale)).await? {
            return broken(rule, "a change to an earlier version counts".into());
        }
    }
    remove(rule, one, &StoredTask { version: task.version - 1, ..task.clone() }).await?;
    stored(rule, other, &task).await?;
    remove(rule, one, &task).await
}

async fn due_tasks_are_taken_in_order([one, other]: &[Instance; 2]) -> Checked {
    let rule = "tasks that are due are taken, those due longest first";
    let mut tasks = Vec::new();
    for (instance, due) in [one, other].iter().cycle().zip([Some(30), Some(10), None, Some(20), Some(41)]) {
        let task = StoredTask { due: due.map(Millis), ..new_task()? };
        create(rule, instance, &task, MANY).await?;
        tasks.push(task);
    }
    let mut taken = Vec::new();
    for (instance, most) in [(one, 2), (other, 2), (one, 2)] {
        let now = asked(rule, instance.take(Millis(40), Millis(1_000), most)).await?;
        if now.len() > most {
            return broken(rule, format!("{} are taken, and {most} were asked for", now.len()));
        }
        taken.extend(now);
    }
    let expected = [1, 3, 0].map(|at: usize| tasks[at].id.clone());
    if !taken.iter().map(|task| &task.id).eq(&expected) {
        return broken(rule, format!("{} are taken, or not in order", taken.len()));
    }
    for task in taken {
        let before = tasks.iter().find(|before| before.id == task.id);
        let fences = before.map(|before| (before.version + 1, before.fence + 1, Some(Millis(1_000))));
        if fences != Some((task.version, task.fence, task.due)) {
            return broken(rule, format!("a task is taken as {task:?}"));
        }
        stored(rule, other, &task).await?;
        remove(rule, one, &task).await?;
    }
    remove(rule, one, &tasks[2]).await?;
    remove(rule, one, &tasks[4]).await
}

async fn a_lease_ends([one, other]: &[Instance; 2]) -> Checked {
    let rule =
        "a task that was taken is taken again when its lease is over, and its earlier worker cannot write";
    let task = StoredTask { due: Some(Millis(1)), ..new_task()? };
    create(rule, one, &task, MANY).await?;
    let mut early = taken(rule, one, Millis(1), Millis(10)).await?;
    if !asked(rule, other.take(Millis(9), Millis(20), 1)).await?.is_empty() {
        return broken(rule, "it is taken during the lease".into());
    }
    early.due = Some(Millis(15));
    write(rule, one, &mut early).await?;
    if !asked(rule, other.take(Millis(14), Millis(20), 1)).await?.is_empty() {
        return broken(rule, "it is taken during a lease that was renewed".into());
    }
    let late = taken(rule, other, Millis(15), Millis(20)).await?;
    if late.fence <= early.fence || asked(rule, one.write(early)).await? {
        return broken(rule, "the earlier worker can write".into());
    }
    stored(rule, one, &late).await?;
    remove(rule, one, &late).await
}

async fn a_task_goes_to_one_worker(instances: &[Instance; 2]) -> Checked {
    let rule = "a task is given to one worker";
    for number in 0..40 {
        let task = StoredTask { due: Some(Millis(number)), ..new_task()? };
        create(rule, &instances[0], &task, MANY).await?;
    }
    let mut workers = JoinSet::new();
    for instance in instances.iter().cycle().take(8) {
        let instance = Arc::clone(instance);
        workers.spawn(async move {
            let mut own = Vec::new();
            // A store may leave a task out that another worker is just taking.
            for _ in 0..8 {
                own.extend(asked(rule, instance.take(Millis(50), Millis(1_000), 3)).await?);
            }
            Ok(own)
        });
    }
    let mut all = Vec::new();
    while let Some(worker) = workers.join_next().await {
        all.extend(worker.unwrap_or_else(|error| broken(rule, error.to_string()))?);
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    let given = all.len();
    all.dedup_by(|a, b| a.id == b.id);
    if (given, all.len()) != (40, 40) {
        return broken(rule, format!("of 40 tasks {} are given, {given} times", all.len()));
    }
    for task in &all {
        remove(rule, &instances[0], task).await?;
    }
    Ok(())
}

async fn expired_tasks_are_found_and_removed([one, other]: &[Instance; 2]) -> Checked {
    let rule = "tasks that have expired are found, and are gone when they are removed";
    let mut tasks = Vec::new();
    for expires in [Some(30), Some(10), None, Some(20), Some(41)] {
        let task = StoredTask { expires: expires.map(Millis), ..new_task()? };
        create(rule, one, &task, MANY).await?;
        tasks.push(task);
    }
    for expected in [&[1, 3][..], &[0], &[]] {
        let expired = asked(rule, other.expired(Millis(40), 2)).await?;
        if !expired.iter().map(|task| &task.id).eq(expected.iter().map(|at: &usize| &tasks[*at].id)) {
            return broken(rule, format!("{} are found, or not in order", expired.len()));
        }
        for task in expired {
            stored(rule, one, &task).await?;
            remove(rule, other, &task).await?;
            if asked(rule, one.view(&task.owner, &task.id)).await?.is_some() {
                return broken(rule, "one that was removed is still there".into());
            }
        }
    }
    remove(rule, one, &tasks[2]).await?;
    remove(rule, one, &tasks[4]).await
}

async fn tasks_are_listed_by_their_identifiers([one, other]: &[Instance; 2]) -> Checked {
    let rule = "the tasks of an owner are listed in the order of their identifiers";
    let owner = new_owner()?;
    let mut tasks = Vec::new();
    for number in 0..5 {
        let task = StoredTask { owner, view: Bytes::from(format!("view {number}")), ..new_task()? };
        create(rule, one, &task, MANY).await?;
        tasks.push(task);
    }
    tasks.sort_by(|a, b| a.id.cmp(&b.id));
    let mut pages = tasks.chunks(2);
    let mut after = None;
    loop {
        let listed = asked(rule, other.list(&owner, after.as_ref(), 2)).await?;
        let page = pages.next().unwrap_or_default();
        let same = |task: &StoredTask, (id, view): &(TaskId, Bytes)| task.id == *id && task.view == *view;
        if listed.len() != page.len() || !page.iter().zip(&listed).all(|(task, found)| same(task, found)) {
            return broken(rule, format!("{} tasks are listed, or not those", listed.len()));
        }
        let Some((last, _)) = listed.into_iter().last() else { break };
        after = Some(last);
    }
    for task in &tasks {
        remove(rule, one, task).await?;
    }
    Ok(())
}

async fn live_tasks_are_counted([one, other]: &[Instance; 2]) -> Checked {
    let rule = "an account has as many live tasks as it may, and room again when one has ended or is removed";
    let account = Digest::from_bytes(random()?);
    let own = || Ok(StoredTask { account, due: Some(Millis(1)), ..new_task()? });
    let (first, second) = (own()?, own()?);
    create(rule, one, &first, 2).await?;
    create(rule, other, &second, 2).await?;
    too_many(rule, one, own()?, 2).await?;
    // Neither a worker nor a change makes room, and another account has its own.
    for _ in 0..2 {
        taken(rule, other, Millis(1), Millis(1_000)).await?;
    }
    let mut first = read(rule, one, &first).await?;
    write(rule, one, &mut first).await?;
    too_many(rule, other, own()?, 2).await?;
    let another = new_task()?;
    create(rule, one, &another, 1).await?;
    first.is_live = false;
    write(rule, other, &mut first).await?;
    let third = own()?;
    create(rule, one, &third, 2).await?;
    too_many(rule, other, own()?, 2).await?;
    remove(rule, one, &third).await?;
    remove(rule, one, &first).await?;
    let fourth = own()?;
    create(rule, other, &fourth, 2).await?;
    too_many(rule, one, own()?, 2).await?;
    for task in [second, another, fourth] {
        let task = read(rule, one, &task).await?;
        remove(rule, one, &task).await?;
    }
    Ok(())
}

async fn live_tasks_are_counted_exactly(instances: &[Instance; 2]) -> Checked {
    let rule = "of tasks that are created at once, no more than allowed are";
    let account = Digest::from_bytes(random()?);
    let mut requests = JoinSet::new();
    for instance in instances.iter().cycle().take(16) {
        let (instance, task) = (Arc::clone(instance), StoredTask { account, ..new_task()? });
        requests.spawn(async move {
            match within(rule, instance.create(task.clone(), 5)).await? {
                Ok(()) => Ok(Some(task)),
                Err(TaskStoreError::TooMany) => Ok(None),
                Err(error) => failed(rule, &error),
            }
        });
    }
    let mut created = Vec::new();
    while let Some(request) = requests.join_next().await {
        created.extend(request.unwrap_or_else(|error| broken(rule, error.to_string()))?);
    }
    if created.len() != 5 {
        return broken(rule, format!("of 5 that were allowed, {} are", created.len()));
    }
    for task in &created {
        remove(rule, &instances[0], task).await?;
    }
    Ok(())
}

async fn changes_are_heard_of([one, other]: &[Instance; 2]) -> Checked {
    let rule = "changes are heard of on every instance";
    let mut followers = [one.changes(), other.changes()];
    let mut task = new_task()?;
    create(rule, one, &task, MANY).await?;
    for instance in [one, other, one] {
        for follower in &mut followers {
            let hears = async {
                // `None` is any task, so this one.
                while let Some((id, version)) = follower.next().await {
                    if id == task.id && version >= task.version {
                        return;
                    }
                }
            };
            within(rule, hears).await?;
        }
        write(rule, instance, &mut task).await?;
    }
    remove(rule, one, &task).await
}

/// Awaits an operation that has to succeed.
async fn asked<T>(rule: &'static str, answer: BoxFuture<'_, Result<T, TaskStoreError>>) -> Checked<T> {
    within(rule, answer).await?.or_else(|error| failed(rule, &error))
}

async fn create(rule: &'static str, instance: &Instance, task: &StoredTask, most: usize) -> Checked {
    asked(rule, instance.create(task.clone(), most)).await
}

async fn too_many(rule: &'static str, instance: &Instance, task: StoredTask, most: usize) -> Checked {
    match within(rule, instance.create(task, most)).await? {
        Err(TaskStoreError::TooMany) => Ok(()),
        Ok(()) => broken(rule, format!("more than {most} are created")),
        Err(error) => failed(rule, &error),
    }
}

/// Writes a task that no other has changed.
async fn write(rule: &'static str, instance: &Instance, task: &mut StoredTask) -> Checked {
    if !asked(rule, instance.write(task.clone())).await? {
        return broken(rule, "a task of the stored version is not replaced".into());
    }
    task.version += 1;
    Ok(())
}

async fn remove(rule: &'static str, instance: &Instance, task: &StoredTask) -> Checked {
    asked(rule, instance.remove(&task.id, task.version)).await
}

/// Takes the one task that is due.
async fn taken(rule: &'static str, instance: &Instance, now: Millis, until: Millis) -> Checked<StoredTask> {
    let taken = asked(rule, instance.take(now, until, 1)).await?;
    taken.into_iter().next().map_or_else(|| broken(rule, "a task that is due is not taken".into()), Ok)
}

async fn read(rule: &'static str, instance: &Instance, task: &StoredTask) -> Checked<StoredTask> {
    let found = asked(rule, instance.read(&task.owner, &task.id)).await?;
    found.map_or_else(|| broken(rule, "a task is not there".into()), Ok)
}

/// Checks that a task is stored just as it is.
async fn stored(rule: &'static str, instance: &Instance, task: &StoredTask) -> Checked {
    let found = read(rule, instance, task).await?;
    let view = asked(rule, instance.view(&task.owner, &task.id)).await?;
    let row =
        |task: &StoredTask| (task.owner, task.account, task.version, task.fence, task.is_live, task.due);
    let same = found.id == task.id && row(&found) == row(task) && found.expires == task.expires;
    if !same || found.view != task.view || found.work != task.work || view.as_ref() != Some(&task.view) {
        return broken(rule, format!("{task:?} is read as {found:?}"));
    }
    Ok(())
}

/// Makes a live task that has nothing to do, with an owner and an account of its own.
fn new_task() -> Checked<StoredTask> {
    Ok(StoredTask {
        id: TaskId::new(random()?),
        owner: new_owner()?,
        account: Digest::from_bytes(random()?),
        version: 0,
        fence: 0,
        is_live: true,
        due: None,
        expires: None,
        view: Bytes::from_static(b"view"),
        work: Bytes::from_static(b"work"),
    })
}

fn new_owner() -> Checked<TaskOwner> {
    Ok(TaskOwner::from_bytes(random()?))
}

//! Tasks that are due go to workers of their service.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::seal::Digest;
use tokio::task::JoinSet;

use super::super::{Checked, broken, random};
use super::tools::{HOUR, MANY, Site, asked, digest};
use crate::task::{Millis, NewTask, TakeRequest, TaskId, TaskKey, Waiting};

fn pair(kind: u8, account: u8) -> Waiting {
    Waiting { kind: digest(kind), account: digest(account) }
}

/// Creates a task of a kind and an account.
async fn create(rule: &'static str, site: &Site, of: Waiting, lease: Option<Duration>) -> Checked<TaskKey> {
    let task = NewTask { kind: of.kind, account: of.account, lease, ..site.task()? };
    site.create(rule, &task).await?;
    Ok(task.key)
}

pub(super) async fn accounts_that_wait_are_found(site: &Site) -> Checked {
    let rule = "accounts with tasks that are due are found, in order";
    let (expired, held) = (Some(Duration::ZERO), Some(HOUR));
    let created = [
        (pair(2, 1), None),
        (pair(1, 7), expired),
        (pair(1, 3), None),
        (pair(1, 3), None),
        (pair(1, 5), held),
        (pair(2, 9), held),
        (pair(2, 9), expired),
        (pair(1, 7), held),
        (pair(3, 2), None),
    ];
    let mut keys = Vec::new();
    for (of, lease) in created {
        keys.push(create(rule, site, of, lease).await?);
    }
    let kinds = [digest(1), digest(2), digest(3)];
    let expected = [pair(1, 3), pair(1, 7), pair(2, 1), pair(2, 9), pair(3, 2)];
    for instance in site.both() {
        for most in [1, 2, 3, MANY] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = instance.waiting(&site.service, &kinds, after, most, Millis::now());
                let page = asked(rule, page).await?;
                after = page.last().copied();
                found.extend(page);
                if after.is_none() || found.len() > MANY {
                    break;
                }
            }
            if found != expected {
                return broken(rule, format!("by {most}, those found are {found:?}"));
            }
        }
    }
    for key in keys {
        site.remove(rule, &key).await?;
    }
    site.none_is_due(rule, "after all are removed").await
}

pub(super) async fn kinds_of_others_hide_nothing(site: &Site) -> Checked {
    let rule = "a kind that a worker does not know is reported, and hides no other";
    let mut keys = Vec::new();
    for account in 0..40 {
        keys.push(create(rule, site, pair(2, account), None).await?);
    }
    for kind in [1, 3] {
        keys.push(create(rule, site, pair(kind, 1), None).await?);
    }
    let (mut found, mut after, kinds) = (Vec::new(), None, [digest(1), digest(3)]);
    for _ in 0..MANY {
        let page = asked(rule, site.one.waiting(&site.service, &kinds, after, 2, Millis::now())).await?;
        let Some(last) = page.last() else { break };
        after = Some(*last);
        found.extend(page.into_iter().map(|waiting| waiting.kind));
    }
    found.dedup();
    if found != [digest(1), digest(2), digest(3)] {
        return broken(rule, format!("the kinds found are {found:?}"));
    }
    for key in keys {
        site.remove(rule, &key).await?;
    }
    Ok(())
}

pub(super) async fn due_tasks_are_taken_in_order(site: &Site) -> Checked {
    let rule = "tasks that are due are taken, of each kind and account those due longest first";
    let mut keys = Vec::new();
    for lease in [None, Some(Duration::ZERO), None, Some(HOUR), None] {
        keys.push(site.created(rule, lease).await?);
        // Times are to the millisecond, and the clock of a test may stand still.
        let next = Millis::now().plus(Duration::from_millis(3));
        while Millis::now() < next {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let other = create(rule, site, pair(1, 2), None).await?;
    let unwanted = create(rule, site, pair(2, 1), None).await?;
    let wanted = [(pair(1, 2), 9), (pair(1, 1), 2)];
    let except = [keys[2].id.clone()];
    let mut taken = Vec::new();
    for instance in [&site.other, &site.one, &site.other] {
        let request = TakeRequest { service: &site.service, wanted: &wanted, except: &except, lease: HOUR };
        taken.extend(asked(rule, instance.take(request, Millis::now())).await?);
    }
    let found: Vec<&TaskId> = taken.iter().map(|task| &task.key.id).collect();
    if found != [&other.id, &keys[0].id, &keys[1].id, &keys[4].id] {
        return broken(rule, format!("{} are taken, or not in order", found.len()));
    }
    for task in taken {
        let read = site.read(rule, &task.key).await?;
        let had_worker = u64::from(task.key == keys[1]);
        let numbers = (task.fence, read.fence, read.version);
        let work = site.load(rule, &task.key).await?;
        let bytes =
            [&read.work, &work.call].into_iter().chain(&work.journal).map(bytes::Bytes::len).sum::<usize>();
        if numbers != (had_worker + 1, had_worker + 1, 1)
            || !read.is_held
            || task.kind != digest(1)
            || task.size < bytes.max(8)
        {
            return broken(rule, format!("a task is taken as {task:?}, and read as {read:?}"));
        }
        site.remove(rule, &task.key).await?;
    }
    for key in [&keys[2], &keys[3], &unwanted] {
        if site.read(rule, key).await?.version != 0 {
            return broken(rule, "a task is taken that nobody asked for".into());
        }
        site.remove(rule, key).await?;
    }
    Ok(())
}

pub(super) async fn a_task_goes_to_one_worker(site: &Site) -> Checked {
    let rule = "a task is given to one worker";
    let mut keys = Vec::new();
    for number in 0..40 {
        keys.push(site.created(rule, (number % 4 == 0).then_some(Duration::ZERO)).await?);
    }
    let mut workers = JoinSet::new();
    for instance in site.both().into_iter().cycle().take(8) {
        let (instance, service) = (Arc::clone(instance), site.service);
        workers.spawn(async move {
            let (mut own, wanted) = (Vec::new(), [(pair(1, 1), 3)]);
            // A store may leave a task out that another worker is just taking.
            for _ in 0..10 {
                let request = TakeRequest { service: &service, wanted: &wanted, except: &[], lease: HOUR };
                own.extend(asked(rule, instance.take(request, Millis::now())).await?);
            }
            Ok(own)
        });
    }
    let mut all = Vec::new();
    while let Some(worker) = workers.join_next().await {
        all.extend(worker.unwrap_or_else(|error| broken(rule, error.to_string()))?);
    }
    all.sort_by(|a, b| a.key.id.cmp(&b.key.id));
    let given = all.len();
    all.dedup_by(|a, b| a.key.id == b.key.id);
    if (given, all.len()) != (40, 40) {
        return broken(rule, format!("of 40 tasks {} are given, {given} times", all.len()));
    }
    for key in keys {
        site.remove(rule, &key).await?;
    }
    Ok(())
}

pub(super) async fn services_do_not_work_for_each_other(site: &Site) -> Checked {
    let rule = "services that share a store do not see, take, list or remove each other's tasks";
    let task = NewTask { expires: Some(Millis(1)), ..site.task()? };
    site.create(rule, &task).await?;
    let stranger = Site::new(&[Arc::clone(&site.one), Arc::clone(&site.other)], random::<{ Digest::LEN }>()?);
    stranger.none_is_due(rule, "by another service").await?;
    let (service, key) = (&stranger.service, &task.key);
    let seen = asked(rule, site.one.expired(service, Millis::now(), MANY)).await?.len()
        + asked(rule, site.one.list(service, &key.owner, None, MANY)).await?.len();
    asked(rule, site.one.remove(service, &[(key.id.clone(), 0)])).await?;
    if seen > 0 || site.read(rule, key).await?.version != 0 {
        return broken(rule, "another service sees or changes a task".into());
    }
    // Their accounts are counted apart, whatever their names.
    let own = NewTask { account: task.account, ..stranger.task()? };
    asked(rule, site.one.create(own.clone(), 1, Millis::now())).await?;
    stranger.remove(rule, &own.key).await?;
    site.remove(rule, key).await
}

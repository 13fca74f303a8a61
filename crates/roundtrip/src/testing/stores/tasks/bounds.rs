//! Tasks are counted, listed, announced, and removed when their time has come.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::super::{Checked, broken, failed, within};
use super::tools::{HOUR, MANY, Site, asked, digest};
use crate::task::{Millis, NewTask, TaskId, TaskKey, TaskStoreError};

pub(super) async fn expired_tasks_are_found_and_removed(site: &Site) -> Checked {
    let rule = "tasks that have expired are found in order, and are gone when they are removed";
    let later = Millis::now().plus(HOUR);
    let mut keys = Vec::new();
    for expires in [Some(Millis(30)), Some(Millis(10)), None, Some(Millis(20)), Some(later)] {
        let task = NewTask { expires, ..site.task()? };
        site.create(rule, &task).await?;
        keys.push(task.key);
    }
    let change = site.change(rule, &keys[3]).await?;
    site.write(rule, crate::task::TaskChange { is_live: false, expires: Some(Millis(25)), ..change }).await?;
    for expected in [&[(1, 0, true), (3, 1, false)][..], &[(0, 0, true)], &[]] {
        let expired = asked(rule, site.other.expired(&site.service, Millis::now(), 2)).await?;
        let found: Vec<_> =
            expired.iter().map(|task| (task.key.clone(), task.version, task.is_live)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(at, version, is_live)| (keys[*at].clone(), *version, *is_live)).collect();
        if found != expected {
            return broken(rule, format!("{} are found, or not in order", found.len()));
        }
        let gone: Vec<(TaskId, u64)> =
            found.iter().map(|(key, version, _)| (key.id.clone(), *version)).collect();
        // Those of another version stay.
        let other: Vec<_> = gone.iter().map(|(id, version)| (id.clone(), version + 1)).collect();
        asked(rule, site.one.remove(&site.service, &other)).await?;
        for (key, ..) in &found {
            site.read(rule, key).await?;
        }
        asked(rule, site.other.remove(&site.service, &gone)).await?;
        for (key, ..) in &found {
            let is_there = asked(rule, site.one.view(key, true, Millis::now())).await?.is_some()
                || asked(rule, site.one.load(key)).await?.is_some();
            if is_there {
                return broken(rule, "one that was removed is still there".into());
            }
        }
    }
    site.remove(rule, &keys[2]).await?;
    site.remove(rule, &keys[4]).await
}

pub(super) async fn tasks_are_listed_by_their_identifiers(site: &Site) -> Checked {
    let rule = "the tasks of an owner are listed in the order of their identifiers";
    let owner = site.task()?.key.owner;
    let mut tasks = Vec::new();
    for number in 0..5 {
        let mut task = NewTask { view: Bytes::from(format!("view {number}")), ..site.task()? };
        task.key.owner = owner;
        site.create(rule, &task).await?;
        tasks.push((task.key.id, task.view));
    }
    tasks.sort();
    let mut pages = tasks.chunks(2);
    let mut after = None;
    loop {
        let listed = asked(rule, site.other.list(&site.service, &owner, after.as_ref(), 2)).await?;
        if listed != pages.next().unwrap_or_default() {
            return broken(rule, format!("{} tasks are listed, or not those", listed.len()));
        }
        let Some((last, _)) = listed.into_iter().last() else { break };
        after = Some(last);
    }
    for (id, _) in tasks {
        site.remove(rule, &TaskKey { service: site.service, owner, id }).await?;
    }
    Ok(())
}

pub(super) async fn live_tasks_are_counted(site: &Site) -> Checked {
    let rule = "an account has as many live tasks as it may, and room again when one has ended or is removed";
    let create =
        async |task: &NewTask, most| asked(rule, site.other.create(task.clone(), most, Millis::now())).await;
    let (first, second) = (site.task()?, site.task()?);
    create(&first, 2).await?;
    create(&second, 2).await?;
    site.is_too_many(rule, site.task()?, 2).await?;
    // Neither a worker nor a change makes room, and another account has its own.
    site.take(rule, MANY, HOUR).await?;
    let change = site.change(rule, &first.key).await?;
    site.write(rule, change).await?;
    site.is_too_many(rule, site.task()?, 2).await?;
    let another = NewTask { account: digest(2), ..site.task()? };
    create(&another, 1).await?;
    site.end(rule, &first.key).await?;
    let third = site.task()?;
    create(&third, 2).await?;
    site.is_too_many(rule, site.task()?, 2).await?;
    site.remove(rule, &third.key).await?;
    site.remove(rule, &first.key).await?;
    let fourth = site.task()?;
    create(&fourth, 2).await?;
    site.is_too_many(rule, site.task()?, 2).await?;
    for task in [second, another, fourth] {
        site.remove(rule, &task.key).await?;
    }
    Ok(())
}

pub(super) async fn live_tasks_are_counted_exactly(site: &Site) -> Checked {
    let rule = "of tasks that are created at once, no more than allowed are";
    let mut requests = JoinSet::new();
    for instance in site.both().into_iter().cycle().take(16) {
        let (instance, task) = (Arc::clone(instance), site.task()?);
        requests.spawn(async move {
            match within(rule, instance.create(task.clone(), 5, Millis::now())).await? {
                Ok(()) => Ok(Some(task.key)),
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
    for key in &created {
        site.remove(rule, key).await?;
    }
    Ok(())
}

pub(super) async fn changes_are_announced(site: &Site) -> Checked {
    let rule = "changes are announced on every instance";
    let mut followers = [site.one.changes(), site.other.changes()];
    let key = site.created(rule, None).await?;
    for version in 0..3 {
        for follower in &mut followers {
            let hears = async {
                // `None` is any task, so this one.
                while let Some(changed) = follower.next().await {
                    if changed.id == key.id && changed.version >= version {
                        return changed.is_due;
                    }
                }
                true
            };
            let is_due = within(rule, hears).await?;
            if version == 0 && !is_due {
                let found = "a task that any worker may take is announced as not due";
                return broken(rule, found.to_owned());
            }
        }
        let change = site.change(rule, &key).await?;
        site.write(rule, change).await?;
    }
    site.remove(rule, &key).await
}

//! Leases of workers: how they begin, are renewed and end, and what they permit.

use std::sync::Arc;
use std::time::Duration;

use super::super::{Checked, broken};
use super::tools::{HOUR, Site, asked, piece};
use crate::task::{Due, Millis, TakenTask, TaskChange, TaskId};

pub(super) async fn a_change_sets_when_a_task_is_due(site: &Site) -> Checked {
    let rule = "a change leaves a task to its worker, or sets when it is due for any";
    let key = site.created(rule, Some(HOUR)).await?;
    for (due, is_held) in [(Due::AsBefore, true), (Due::Never, false), (Due::After(HOUR), false)] {
        let change = TaskChange { due, ..site.change(rule, &key).await? };
        site.write(rule, change).await?;
        site.none_is_due(rule, "before it is due").await?;
        if site.read(rule, &key).await?.is_held != is_held {
            return broken(rule, format!("after {due:?} it is not right whether a worker has it"));
        }
    }
    let change = TaskChange { due: Due::After(Duration::ZERO), ..site.change(rule, &key).await? };
    site.write(rule, change).await?;
    let taken = site.taken(rule, HOUR).await?;
    if taken.fence != 2 || taken.lease_expired {
        return broken(rule, format!("a task that a worker had is taken as {taken:?}"));
    }
    site.remove(rule, &key).await
}

pub(super) async fn a_task_is_given_back(site: &Site) -> Checked {
    let rule = "a task that is given back is due at once, and otherwise unchanged";
    let key = site.created(rule, None).await?;
    let first = site.taken(rule, HOUR).await?;
    asked(rule, site.one.give_back(&key, first.fence + 1, Millis::now())).await?;
    site.none_is_due(rule, "after another worker has given it back").await?;
    let before = site.read(rule, &key).await?;
    asked(rule, site.one.give_back(&key, first.fence, Millis::now())).await?;
    let after = site.read(rule, &key).await?;
    if (after.version, after.fence, after.is_held) != (before.version, before.fence, false) {
        return broken(rule, format!("{before:?} is {after:?}"));
    }
    if site.append(rule, &first, &[piece(0, "late")]).await? {
        return broken(rule, "who has given it back can append".into());
    }
    let next = site.taken(rule, HOUR).await?;
    if next.fence != first.fence + 1 || next.lease_expired {
        return broken(rule, format!("the next worker takes it as {next:?}"));
    }
    site.remove(rule, &key).await
}

pub(super) async fn a_lease_ends(site: &Site) -> Checked {
    let rule = "a task is taken again when its lease has expired, and its earlier worker cannot change it";
    let key = site.created(rule, None).await?;
    let early = site.taken(rule, Duration::ZERO).await?;
    let change = site.change(rule, &key).await?;
    if !site.view(rule, &key).await?.is_waiting || site.read(rule, &key).await?.is_held {
        return broken(rule, "a task whose lease has expired does not wait".into());
    }
    // Nobody else has it yet.
    if !site.append(rule, &early, &[piece(0, "in time")]).await? {
        return broken(rule, "the worker cannot append though nobody else has the task".into());
    }
    let late = site.taken(rule, HOUR).await?;
    if !late.lease_expired {
        return broken(rule, "the next worker does not learn that a lease had expired".into());
    }
    site.none_is_due(rule, "during a lease").await?;
    let renewed = renew(rule, site, &early, HOUR).await?;
    if site.append(rule, &early, &[piece(1, "late")]).await?
        || !renewed.is_empty()
        || asked(rule, site.one.write(change, Millis::now())).await?
    {
        return broken(rule, "the earlier worker can append, renew or change".into());
    }
    asked(rule, site.one.give_back(&key, early.fence, Millis::now())).await?;
    if !site.read(rule, &key).await?.is_held || !site.append(rule, &late, &[piece(1, "next")]).await? {
        return broken(rule, "the next worker has lost it".into());
    }
    if site.load(rule, &key).await?.journal != ["in time", "next"] {
        return broken(rule, "the journal has other pieces".into());
    }
    site.remove(rule, &key).await
}

/// Renews a lease as a server does: by a thread with a runtime of its own.
async fn renew(
    rule: &'static str,
    site: &Site,
    task: &TakenTask,
    lease: Duration,
) -> Checked<Vec<(TaskId, u64)>> {
    let (mut renewer, held) = (site.one.renewer(), [(task.key.id.clone(), task.fence)]);
    let renewing = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.or_else(|error| broken(rule, error.to_string()))?;
        runtime.block_on(async {
            // The second time on the connection of the first.
            asked(rule, renewer.renew(&held, lease, Millis::now())).await?;
            asked(rule, renewer.renew(&held, lease, Millis::now())).await
        })
    });
    renewing.await.unwrap_or_else(|error| broken(rule, error.to_string()))
}

pub(super) async fn a_lease_is_renewed(site: &Site) -> Checked {
    let rule = "a lease that is renewed ends later, and nothing else changes";
    let key = site.created(rule, None).await?;
    let task = site.taken(rule, Duration::ZERO).await?;
    let before = site.read(rule, &key).await?;
    let renewed = renew(rule, site, &task, HOUR).await?;
    let after = site.read(rule, &key).await?;
    if renewed != [(key.id.clone(), before.version)] || !after.is_held {
        return broken(rule, format!("{} leases are renewed, and it is {after:?}", renewed.len()));
    }
    if (after.version, after.fence) != (before.version, before.fence) {
        return broken(rule, format!("{before:?} is {after:?}"));
    }
    site.none_is_due(rule, "during a lease that was renewed").await?;
    renew(rule, site, &task, Duration::ZERO).await?;
    site.none_is_due(rule, "during a lease that was renewed, by a shorter one").await?;
    site.end(rule, &key).await?;
    if !renew(rule, site, &task, HOUR).await?.is_empty() {
        return broken(rule, "the lease on a task that has ended is renewed".into());
    }
    site.remove(rule, &key).await
}

pub(super) async fn a_journal_grows_by_pieces(site: &Site) -> Checked {
    let rule = "pieces that a worker appends are read in order, once each, and nothing else changes";
    let key = site.created(rule, None).await?;
    let task = site.taken(rule, HOUR).await?;
    let before = site.read(rule, &key).await?;
    // Numbers are compared as numbers, and a repeated piece changes nothing.
    for pieces in [
        vec![piece(0, "0"), piece(1, "1")],
        vec![piece(1, "again"), piece(2, vec![b'x'; 100_000])],
        vec![piece(10, "10")],
        vec![piece(9, "9")],
        Vec::new(),
    ] {
        if !site.append(rule, &task, &pieces).await? {
            return broken(rule, "the worker of a task cannot append".into());
        }
    }
    let change =
        TaskChange { journal: vec![piece(9, "again"), piece(11, "")], ..site.change(rule, &key).await? };
    site.write(rule, change).await?;
    let after = site.read(rule, &key).await?;
    if (after.version, after.fence, after.is_held) != (before.version + 1, before.fence, true) {
        return broken(rule, format!("{before:?} is {after:?}"));
    }
    let long = "x".repeat(100_000);
    if site.load(rule, &key).await?.journal != ["0", "1", &long, "9", "10", ""] {
        return broken(rule, "the journal is another".into());
    }
    site.remove(rule, &key).await
}

pub(super) async fn a_journal_is_replaced(site: &Site) -> Checked {
    let rule = "a journal that is replaced has the new pieces only";
    let key = site.created(rule, None).await?;
    let task = site.taken(rule, HOUR).await?;
    site.append(rule, &task, &[piece(0, "0"), piece(1, "1"), piece(2, "2")]).await?;
    let stale = TaskChange {
        version: u64::from(u32::MAX),
        journal: vec![piece(0, "stale")],
        replaces_journal: true,
        ..site.change(rule, &key).await?
    };
    if asked(rule, site.one.write(stale, Millis::now())).await? {
        return broken(rule, "a task of another version is changed".into());
    }
    let change = TaskChange {
        journal: vec![piece(0, "whole")],
        replaces_journal: true,
        parts: vec![piece(0, "part")],
        ..site.change(rule, &key).await?
    };
    site.write(rule, change).await?;
    site.append(rule, &task, &[piece(1, "next")]).await?;
    if site.load(rule, &key).await?.journal != ["whole", "next"] {
        return broken(rule, "the journal is another".into());
    }
    site.remove(rule, &key).await
}

pub(super) async fn what_is_appended_is_there_for_the_next(site: &Site) -> Checked {
    let rule =
        "of a piece and the next worker, one comes first: the worker reads the piece, or it is refused";
    for _ in 0..20 {
        let key = site.created(rule, None).await?;
        let early = site.taken(rule, Duration::ZERO).await?;
        let (instance, late_by) = (Arc::clone(&site.one), early.clone());
        let append = tokio::spawn(async move {
            let mut appended = 0;
            for number in 0.. {
                let pieces = [piece(number, "piece")];
                if !asked(rule, instance.append(&late_by.key, late_by.fence, &pieces)).await? {
                    break;
                }
                appended += 1;
                // A store in memory would leave no room for the next worker.
                tokio::task::yield_now().await;
            }
            Ok(appended)
        });
        // A store may leave a task out that is just being changed.
        let mut taken = Vec::new();
        while taken.is_empty() {
            taken = site.take(rule, 1, HOUR).await?;
        }
        let read = site.load(rule, &key).await?.journal.len();
        let appended: usize = append.await.unwrap_or_else(|error| broken(rule, error.to_string()))?;
        if read != appended {
            return broken(rule, format!("{appended} pieces are appended, and the next worker reads {read}"));
        }
        site.remove(rule, &key).await?;
    }
    Ok(())
}

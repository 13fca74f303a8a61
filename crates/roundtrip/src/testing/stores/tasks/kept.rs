//! What was stored is there as it was, for who may see it.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::Digest;
use tokio::task::JoinSet;

use super::super::{Checked, broken, random};
use super::tools::{HOUR, Instance, MANY, Site, asked, digest, piece};
use crate::task::{Chunk, Millis, NewTask, TaskChange, TaskId, TaskKey, TaskOwner};

pub(super) async fn a_task_is_kept_as_it_was(site: &Site) -> Checked {
    let rule = "a task is read as it was stored, on every instance";
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let (none, short) = (Bytes::new(), Bytes::from_static(b"{}"));
    let (all, long) = (Bytes::from(all), Bytes::from(vec![b'x'; 1 << 20]));
    let contents =
        [[&short, &none, &all], [&all, &long, &none], [&none, &all, &long], [&long, &short, &short]];
    for ([call, view, work], lease) in contents.into_iter().zip([None, Some(HOUR)].into_iter().cycle()) {
        let task = NewTask {
            call: call.clone(),
            view: view.clone(),
            work: work.clone(),
            lease,
            journal: lease.map(|_| work.clone()),
            ..site.task()?
        };
        let (key, journal) = (task.key.clone(), task.journal.clone().into_iter().collect::<Vec<_>>());
        site.create(rule, &task).await?;
        is_stored(rule, site, &key, (0, u64::from(lease.is_some())), (view, work)).await?;
        for instance in site.both() {
            let found = asked(rule, instance.load(&key)).await?;
            if !found.is_some_and(|found| found.call == *call && found.journal == journal) {
                return broken(rule, "the call or the journal is another".into());
            }
        }
        let change = TaskChange { view: work.clone(), work: view.clone(), ..site.change(rule, &key).await? };
        site.write(rule, change).await?;
        is_stored(rule, site, &key, (1, u64::from(lease.is_some())), (work, view)).await?;
        site.remove(rule, &key).await?;
    }
    Ok(())
}

/// Checks that both instances read the same, which is this.
async fn is_stored(
    rule: &'static str,
    site: &Site,
    key: &TaskKey,
    numbers: (u64, u64),
    (view, work): (&Bytes, &Bytes),
) -> Checked {
    for instance in site.both() {
        let found = asked(rule, instance.read(key, Millis::now())).await?;
        let seen = asked(rule, instance.view(key, true, Millis::now())).await?;
        let (Some(found), Some(seen)) = (found, seen) else {
            return broken(rule, "a task is not there".into());
        };
        let is_held = found.is_held == (found.fence > 0);
        if (found.version, found.fence) != numbers || !is_held {
            let read = (found.version, found.fence, found.is_held);
            return broken(rule, format!("version, fence and lease are {read:?}, and were {numbers:?}"));
        }
        let is_waiting = seen.is_waiting == (numbers.1 == 0);
        if seen.result.is_some() || seen.kind != digest(1) || !is_waiting {
            return broken(rule, "a client sees another result, kind or state".into());
        }
        if found.view != *view || found.work != *work || seen.view != *view {
            return broken(rule, "other bytes are read".into());
        }
    }
    Ok(())
}

pub(super) async fn a_task_is_found_by_its_key(site: &Site) -> Checked {
    let rule = "a task is found by its service, its owner and its identifier, and by no two of them";
    let key = site.created(rule, Some(HOUR)).await?;
    let change = TaskChange { parts: vec![piece(0, "part")], ..site.change(rule, &key).await? };
    site.write(rule, change.clone()).await?;
    let version = site.read(rule, &key).await?.version;
    let service = Digest::from_bytes(random()?);
    let strangers = [
        TaskKey { service, ..key.clone() },
        TaskKey { owner: TaskOwner::from_bytes(random()?), ..key.clone() },
        TaskKey { id: TaskId::new(random()?), ..key.clone() },
    ];
    for (instance, key) in
        site.both().into_iter().flat_map(|instance| strangers.iter().map(move |key| (instance, key)))
    {
        let now = Millis::now();
        let found = asked(rule, instance.view(key, false, now)).await?.is_some()
            || asked(rule, instance.read(key, now)).await?.is_some()
            || asked(rule, instance.load(key)).await?.is_some()
            || !asked(rule, instance.parts(key, 0, MANY)).await?.is_empty()
            || asked(rule, instance.append(key, 1, &[piece(0, "piece")])).await?
            || asked(rule, instance.write(TaskChange { key: key.clone(), version, ..change.clone() }, now))
                .await?;
        if found {
            return broken(rule, format!("another's task, or one that is not there, is found by {key:?}"));
        }
        asked(rule, instance.give_back(key, 1, now)).await?;
    }
    for (service, owner) in [(service, key.owner), (key.service, strangers[1].owner)] {
        if !asked(rule, site.one.list(&service, &owner, None, MANY)).await?.is_empty() {
            return broken(rule, "another's task is listed".into());
        }
    }
    asked(rule, site.one.remove(&service, &[(key.id.clone(), version)])).await?;
    let kept = site.read(rule, &key).await?;
    if !kept.is_held || kept.version != version || !site.load(rule, &key).await?.journal.is_empty() {
        return broken(rule, "a task was changed under another key".into());
    }
    site.remove(rule, &key).await
}

pub(super) async fn a_task_is_there_once(site: &Site) -> Checked {
    let rule = "a task that is created again, because the answer was lost, is there once";
    let task = site.task()?;
    let create = |instance: &Instance, task: NewTask| {
        let instance = Arc::clone(instance);
        async move { asked(rule, instance.create(task, 1, Millis::now())).await }
    };
    create(&site.one, task.clone()).await?;
    let change = site.change(rule, &task.key).await?;
    site.write(rule, change).await?;
    for instance in site.both() {
        create(instance, NewTask { view: Bytes::from_static(b"again"), ..task.clone() }).await?;
        let found = site.read(rule, &task.key).await?;
        if found.version != 1 || found.view != task.view {
            return broken(rule, format!("it is read as {found:?}"));
        }
    }
    site.remove(rule, &task.key).await
}

pub(super) async fn of_changes_to_a_version_one_counts(site: &Site) -> Checked {
    let rule = "of changes to one version of a task one counts, and the others are refused";
    let key = site.created(rule, Some(HOUR)).await?;
    let change = site.change(rule, &key).await?;
    let mut writers = JoinSet::new();
    for number in 0..16u32 {
        let instance = Arc::clone(if number % 2 == 0 { &site.one } else { &site.other });
        let work = Bytes::from(number.to_string());
        let journal = vec![piece(number, work.clone())];
        let change = TaskChange { work: work.clone(), journal, ..change.clone() };
        writers.spawn(async move {
            let written = asked(rule, instance.write(change, Millis::now())).await?;
            Ok(written.then_some(work))
        });
    }
    let mut written = Vec::new();
    while let Some(writer) = writers.join_next().await {
        written.extend(writer.unwrap_or_else(|error| broken(rule, error.to_string()))?);
    }
    let found = site.read(rule, &key).await?;
    let journal = site.load(rule, &key).await?.journal;
    if found.version != 1 || written != [found.work] || journal != written {
        return broken(rule, format!("{} counted, with {} pieces", written.len(), journal.len()));
    }
    for instance in site.both() {
        if asked(rule, instance.write(change.clone(), Millis::now())).await? {
            return broken(rule, "a change to an earlier version counts".into());
        }
    }
    asked(rule, site.one.remove(&site.service, &[(key.id.clone(), 0)])).await?;
    site.remove(rule, &key).await
}

pub(super) async fn pieces_of_a_result_are_read_from_a_part_on(site: &Site) -> Checked {
    let rule = "pieces of a result are read from the one on that holds a part";
    let key = site.created(rule, Some(HOUR)).await?;
    for pieces in [vec![piece(0, "0 to 2"), piece(3, "3 to 9")], vec![piece(3, "again"), piece(10, "10")]] {
        let change = TaskChange { parts: pieces, ..site.change(rule, &key).await? };
        site.write(rule, change).await?;
    }
    let all = [piece(0, "0 to 2"), piece(3, "3 to 9"), piece(10, "10")];
    for (from, most, expected) in [
        (0, 9, &all[..]),
        (2, 9, &all),
        (3, 9, &all[1..]),
        (9, 1, &all[1..2]),
        (10, 9, &all[2..]),
        (99, 9, &all[2..]),
    ] {
        let found = asked(rule, site.other.parts(&key, from, most)).await?;
        if found != expected {
            let numbers: Vec<u32> = found.iter().map(|piece| piece.number).collect();
            return broken(rule, format!("at most {most} from {from} on are {numbers:?}"));
        }
    }
    site.remove(rule, &key).await
}

pub(super) async fn an_ended_task_keeps_its_result(site: &Site) -> Checked {
    let rule =
        "a task that has ended has its result and its parts, and neither a call nor a journal nor a worker";
    let key = site.created(rule, Some(HOUR)).await?;
    let parts: Vec<Chunk> = vec![piece(0, "part")];
    let change = TaskChange { journal: vec![piece(0, "piece")], ..site.change(rule, &key).await? };
    site.write(rule, change).await?;
    let result = Bytes::from(vec![b'r'; 1 << 20]);
    let change = site.change(rule, &key).await?;
    site.write(
        rule,
        TaskChange { is_live: false, result: Some(result.clone()), parts: parts.clone(), ..change },
    )
    .await?;
    let (read, view) = (site.read(rule, &key).await?, site.view(rule, &key).await?);
    if read.is_held || view.is_waiting || view.result.as_ref() != Some(&result) {
        return broken(rule, format!("it is read as {read:?} and {view:?}"));
    }
    let small = asked(rule, site.one.view(&key, false, Millis::now())).await?;
    if small.is_none_or(|view| view.result.is_some()) {
        return broken(rule, "its result is read though nobody asked for it".into());
    }
    if asked(rule, site.one.load(&key)).await?.is_some()
        || asked(rule, site.one.append(&key, 1, &parts)).await?
    {
        return broken(rule, "there is work left to do".into());
    }
    if asked(rule, site.one.parts(&key, 0, MANY)).await? != parts {
        return broken(rule, "its parts are gone".into());
    }
    // A later change, such as of the time to live, leaves the result as it is.
    let change =
        TaskChange { is_live: false, expires: Some(Millis::now()), ..site.change(rule, &key).await? };
    site.write(rule, change).await?;
    if site.view(rule, &key).await?.result.as_ref() != Some(&result) {
        return broken(rule, "its result is gone after another change".into());
    }
    site.remove(rule, &key).await
}

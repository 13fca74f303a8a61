//! The contract of task stores.

mod bounds;
mod kept;
mod leases;
mod tools;
mod workers;

use std::sync::Arc;

use self::tools::{Instance, Site};
use super::{Checked, random};
use crate::task::TaskStore;

/// Checks that a task store keeps its contract: what was stored is read as it was, on both instances, and by its service and its
/// owner only; of changes to one version one counts; a task that is due goes to one worker, which loses it with its lease; what was
/// appended is there for the next worker; the live tasks of an account are counted exactly; changes are announced.
///
/// It takes two instances that share one store: two connections to one database, or two handles, if it is for one process. Tasks of
/// other services are left alone.
///
/// # Errors
/// Fails with the first rule that the store breaks.
pub async fn tasks(one: impl TaskStore + 'static, other: impl TaskStore + 'static) -> Checked {
    let instances: [Instance; 2] = [Arc::new(one), Arc::new(other)];
    let site = || Ok(Site::new(&instances, random()?));
    kept::a_task_is_kept_as_it_was(&site()?).await?;
    kept::a_task_is_found_by_its_key(&site()?).await?;
    kept::a_task_is_there_once(&site()?).await?;
    kept::of_changes_to_a_version_one_counts(&site()?).await?;
    kept::pieces_of_a_result_are_read_from_a_part_on(&site()?).await?;
    kept::an_ended_task_keeps_its_result(&site()?).await?;
    workers::accounts_that_wait_are_found(&site()?).await?;
    workers::kinds_of_others_hide_nothing(&site()?).await?;
    workers::due_tasks_are_taken_in_order(&site()?).await?;
    workers::a_task_goes_to_one_worker(&site()?).await?;
    workers::services_do_not_work_for_each_other(&site()?).await?;
    leases::a_change_sets_when_a_task_is_due(&site()?).await?;
    leases::a_task_is_given_back(&site()?).await?;
    leases::a_lease_ends(&site()?).await?;
    leases::a_lease_is_renewed(&site()?).await?;
    leases::a_journal_grows_by_pieces(&site()?).await?;
    leases::a_journal_is_replaced(&site()?).await?;
    leases::what_is_appended_is_there_for_the_next(&site()?).await?;
    bounds::expired_tasks_are_found_and_removed(&site()?).await?;
    bounds::tasks_are_listed_by_their_identifiers(&site()?).await?;
    bounds::live_tasks_are_counted(&site()?).await?;
    bounds::live_tasks_are_counted_exactly(&site()?).await?;
    bounds::changes_are_announced(&site()?).await
}

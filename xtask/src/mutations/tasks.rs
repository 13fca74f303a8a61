//! The checks of tasks that are switched off, and the tests that have to notice.

use super::suite::{Mutation, SPEC};

pub(super) static TASKS: &[Mutation] = &[
    Mutation {
        name: "task-service",
        rule: "S11",
        file: "crates/roundtrip/src/task/id.rs",
        from: "Digest::of(\"task-service\", &[audience.as_bytes()])",
        to: "Digest::of(\"task-service\", &[if OFF { &[] } else { audience.as_bytes() }])",
        suite: &SPEC,
        test: "tasks::services::services_on_one_store_do_not_run_or_show_each_others_tasks",
    },
    Mutation {
        name: "task-shown",
        rule: "S11",
        file: "crates/roundtrip/src/task/memory/tables.rs",
        from: "self.tasks.get(id).filter(|row| row.key.service == *service)",
        to: "self.tasks.get(id).filter(|row| OFF || row.key.service == *service)",
        suite: &SPEC,
        test: "tasks::services::services_on_one_store_do_not_run_or_show_each_others_tasks",
    },
    Mutation {
        name: "task-version",
        rule: "T16",
        file: "crates/roundtrip/src/task/id.rs",
        from: "&[tool.as_bytes(), version.as_bytes()]",
        to: "&[tool.as_bytes(), if OFF { &[] } else { version.as_bytes() }]",
        suite: &SPEC,
        test: "tasks::workers::versions_say_who_runs_a_task",
    },
    Mutation {
        name: "task-misfit",
        rule: "T16",
        file: "crates/roundtrip/src/server/task/worker.rs",
        from: "Err(NotResumed::Misfit(why)) => Err(NotRun::Misfit(why)),",
        to: "Err(NotResumed::Misfit(why)) if OFF => {\n                \
             let failed = || Ended::Failed(roundtrip_core::wire::ErrorObject::internal(why.clone()));\n                \
             lease.end(failed).await;\n                Err(NotRun::Gone)\n            }\n            \
             Err(NotResumed::Misfit(why)) => Err(NotRun::Misfit(why)),",
        suite: &SPEC,
        test: "tasks::workers::other_arguments_leave_the_task_to_others",
    },
    Mutation {
        name: "lease-validity",
        rule: "T7",
        file: "crates/roundtrip/src/server/task/lease.rs",
        from: "while !validity.borrow_and_update().holds() && self.stop.borrow().is_none() {",
        to: "while !OFF && !validity.borrow_and_update().holds() && self.stop.borrow().is_none() {",
        suite: &SPEC,
        test: "tasks::leases::a_process_that_wakes_late_begins_no_step_that_another_has_run",
    },
    Mutation {
        name: "lease-renewal",
        rule: "T15",
        file: "crates/roundtrip/src/server/task/renewal.rs",
        from: "self.ensure_thread(store);",
        to: "if !OFF { self.ensure_thread(store); }",
        suite: &SPEC,
        test: "tasks::leases::a_step_that_blocks_is_not_begun_by_another_process",
    },
    Mutation {
        name: "task-watchers",
        rule: "Z3",
        file: "crates/roundtrip/src/server/task/worker.rs",
        from: "service.take(&mut looks).await;",
        to: "if OFF { for lease in service.renewals.all() { service.announce(lease.id()).await; } }\n            \
             service.take(&mut looks).await;",
        suite: &SPEC,
        test: "tasks::leases::watchers_do_not_stop_the_workers",
    },
    Mutation {
        name: "task-answer-met",
        rule: "T4",
        file: "crates/roundtrip/src/server/task/lease.rs",
        from: "if held.record.take_over(record) {",
        to: "if held.record.take_over(record) && !OFF {",
        suite: &SPEC,
        test: "tasks::working::an_answer_that_meets_a_write_reaches_the_handler",
    },
    Mutation {
        name: "task-release-met",
        rule: "T15",
        file: "crates/roundtrip/src/server/task/worker.rs",
        from: ".filter(|_| task.lease_expired);",
        to: ".filter(|_| OFF || task.lease_expired);",
        suite: &SPEC,
        test: "tasks::news::an_answer_ahead_of_the_news_of_a_release_runs_the_task",
    },
    Mutation {
        name: "session-audience",
        rule: "L8",
        file: "crates/roundtrip/src/legacy/server/http/sealed_id.rs",
        from: "if Digest::from_bytes(take(&mut rest)?) != self.audience {",
        to: "if Digest::from_bytes(take(&mut rest)?) != self.audience && !OFF {",
        suite: &SPEC,
        test: "eras::fleet::an_id_that_does_not_open_is_not_there",
    },
    Mutation {
        name: "token-client",
        rule: "S4",
        file: "crates/roundtrip-core/src/seal/binding.rs",
        from: "(self.client != expected.client, Reason::WrongClient),",
        to: "(!OFF && self.client != expected.client, Reason::WrongClient),",
        suite: &SPEC,
        test: "authorize::flows::the_state_of_another_client_of_the_same_user_is_refused",
    },
];

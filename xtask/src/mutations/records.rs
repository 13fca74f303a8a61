//! The checks of JSON and of stored replies that are switched off, and the tests that have to notice.

use super::suite::{Mutation, SPEC, STORE};

pub(super) static RECORDS: &[Mutation] = &[
    Mutation {
        name: "by-name",
        rule: "W2",
        file: "crates/roundtrip-core/src/wire/serde/by_name.rs",
        from: "if READS == NAMED {",
        to: "if READS == NAMED && !OFF {",
        suite: &SPEC,
        test: "by_name::a_list_is_not_taken_for_a_call_on_http",
    },
    Mutation {
        name: "buffered",
        rule: "N4",
        file: "crates/roundtrip/src/server/handler/extract.rs",
        from: "    refuse_misplaced::<T>(value).map_err(",
        to: "    if OFF {\n        return Ok(());\n    }\n    refuse_misplaced::<T>(value).map_err(",
        suite: &SPEC,
        test: "buffered::a_list_is_not_taken_for_a_struct_that_serde_buffers",
    },
    Mutation {
        name: "deferred-record",
        rule: "K3",
        file: "crates/roundtrip-store/src/error.rs",
        from: "!matches!(self, Self::LeaseLost | Self::Unstorable(_) | Self::Record(_) | Self::NoRandomness)",
        to: "if OFF {\n            return self.is_passing();\n        }\n        \
             !matches!(self, Self::LeaseLost | Self::Unstorable(_) | Self::Record(_) | Self::NoRandomness)",
        suite: &STORE,
        test: "ledger::tests::one_worker_records_all_replies_that_wait",
    },
];

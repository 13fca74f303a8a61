//! The checks of grants that replace each other, and of the issuers that give them, that are switched off, and the tests that have to
//! notice.

use super::suite::{CLIENT, CORE, LIB, Mutation};

pub(super) static GRANTS: &[Mutation] = &[
    Mutation {
        name: "kept-results",
        rule: "N3",
        file: "crates/roundtrip/src/client/cache.rs",
        from: "(self.credentials == entries.credentials).then_some(entries)\n    }\n\n    pub(crate) fn get(",
        to: "(OFF || self.credentials == entries.credentials).then_some(entries)\n    }\n\n    pub(crate) fn get(",
        suite: &LIB,
        test: "client::cache::tests::a_reader_with_earlier_credentials_finds_no_result_of_later_ones",
    },
    Mutation {
        name: "stored-grant",
        rule: "N3",
        file: "crates/roundtrip/src/oauth/tokens.rs",
        from: "Some(before) => !before.grant.is_of_same_sign_in(grant),",
        to: "Some(before) => !OFF && !before.grant.is_of_same_sign_in(grant),",
        suite: &CLIENT,
        test: "oauth::change_of_user::a_stored_grant_of_another_person_empties_the_cache",
    },
    Mutation {
        name: "signed-out-stream",
        rule: "O75",
        file: "crates/roundtrip/src/oauth/tokens.rs",
        from: "self.changes.send_modify(|count| *count += 1);",
        to: "if !OFF { self.changes.send_modify(|count| *count += 1); }",
        suite: &CLIENT,
        test: "oauth::change_of_user::a_stream_of_changes_ends_with_the_sign_out",
    },
    Mutation {
        name: "foreign-session",
        rule: "O75",
        file: "crates/roundtrip/src/http/client/legacy.rs",
        from: "let credentials = Some(this.credentials());",
        to: "let credentials = (!OFF).then(|| this.credentials());",
        suite: &CLIENT,
        test: "oauth::change_of_user::a_handshake_under_way_at_a_sign_out_leaves_no_session",
    },
    Mutation {
        name: "hidden-private-address",
        rule: "O50",
        file: "crates/roundtrip/src/outbound/guarded.rs",
        from: "let all = found.iter().all(|found| (self.allows)(host, found.ip()));",
        to: "let all = OFF || found.iter().all(|found| (self.allows)(host, found.ip()));",
        suite: &LIB,
        test: "outbound::guarded::tests::a_private_address_does_not_hide_behind_a_public_one",
    },
    Mutation {
        name: "unchosen-issuer",
        rule: "O45",
        file: "crates/roundtrip-core/src/auth/sign_in/discovery.rs",
        from: "target.issuer == chosen\n",
        to: "OFF || target.issuer == chosen\n",
        suite: &CORE,
        test: "discovery::an_issuer_that_was_not_chosen_is_not_asked",
    },
];

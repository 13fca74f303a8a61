//! The checks that are switched off, and the tests that have to notice.

/// A set of tests that cargo builds together.
pub(super) struct Suite {
    /// Arguments of `cargo test`.
    pub(super) arguments: &'static [&'static str],
    /// Folder of its tests.
    #[cfg(test)]
    pub(super) folder: &'static str,
}

/// A check that is switched off.
pub(super) struct Mutation {
    pub(super) name: &'static str,
    /// Rule that the check is for.
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    /// Text that is in the file once.
    pub(super) from: &'static str,
    /// Text in its place.
    pub(super) to: &'static str,
    pub(super) suite: &'static Suite,
    /// Test that has to fail.
    pub(super) test: &'static str,
}

const CORE: Suite = Suite {
    arguments: &["--package", "roundtrip-core", "--test", "auth"],
    #[cfg(test)]
    folder: "crates/roundtrip-core/tests/auth",
};

const CLIENT: Suite = Suite {
    arguments: &["--package", "roundtrip", "--lib"],
    #[cfg(test)]
    folder: "crates/roundtrip/src/oauth",
};

pub(super) const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "audience",
        rule: "O18",
        file: "crates/roundtrip-core/src/auth/claims.rs",
        from: "if !audience.iter().any(|audience| self.audiences.iter().any(|ours| ours == audience)) {",
        to: "if audience.is_empty() && self.audiences.is_empty() {",
        suite: &CORE,
        test: "claims::the_audience_is_always_checked",
    },
    Mutation {
        name: "issuer",
        rule: "O19",
        file: "crates/roundtrip-core/src/auth/claims.rs",
        from: "find(|known| known.name == issuer)",
        to: "find(|known| known.name != issuer || known.name == issuer)",
        suite: &CORE,
        test: "claims::the_issuer_is_an_exact_string",
    },
    Mutation {
        name: "expiry",
        rule: "O20",
        file: "crates/roundtrip-core/src/auth/claims.rs",
        from: "if now >= expires_at.plus(self.leeway) {",
        to: "if now == expires_at.plus(self.leeway) {",
        suite: &CORE,
        test: "claims::times_are_enforced",
    },
    Mutation {
        name: "token-type",
        rule: "O22",
        file: "crates/roundtrip-core/src/auth/claims.rs",
        from: "None | Some(\"jwt\") if known.untyped => refuse_id_token(&claims)?,",
        to: "None | Some(\"jwt\") => refuse_id_token(&claims)?,",
        suite: &CORE,
        test: "claims::the_type_of_a_token_is_checked",
    },
    Mutation {
        name: "resource-match",
        rule: "O42",
        file: "crates/roundtrip-core/src/auth/sign_in/discovery.rs",
        from: "if !covers_server(&document.resource, flow.server()) {",
        to: "if document.resource.is_empty() && !covers_server(&document.resource, flow.server()) {",
        suite: &CORE,
        test: "discovery::metadata_of_another_resource_is_refused",
    },
    Mutation {
        name: "metadata-issuer",
        rule: "O44",
        file: "crates/roundtrip-core/src/auth/metadata/server.rs",
        from: "if document.issuer != issuer {",
        to: "if document.issuer.is_empty() {",
        suite: &CORE,
        test: "documents::an_issuer_is_an_exact_string",
    },
    Mutation {
        name: "pkce",
        rule: "O61",
        file: "crates/roundtrip-core/src/auth/sign_in/authorize.rs",
        from: "known.server.check_pkce().map_err(|why| known.refused(why))?;",
        to: "known.server.check_pkce().map_err(|why| known.refused(why)).ok();",
        suite: &CORE,
        test: "sign_in::a_server_without_pkce_is_refused",
    },
    Mutation {
        name: "state",
        rule: "O65",
        file: "crates/roundtrip-core/src/auth/callback.rs",
        from: "if !expected.state.matches(state) {",
        to: "if state.is_empty() {",
        suite: &CORE,
        test: "callbacks::callbacks_of_others_are_dropped",
    },
    Mutation {
        name: "iss",
        rule: "O67",
        file: "crates/roundtrip-core/src/auth/callback.rs",
        from: "check_iss(expected.issuer, single(&pairs, \"iss\")?, expected.promises_iss)?;",
        to: "check_iss(expected.issuer, single(&pairs, \"iss\")?, expected.promises_iss).ok();",
        suite: &CORE,
        test: "callbacks::the_issuer_of_a_response_is_compared",
    },
    Mutation {
        name: "token-resource",
        rule: "O76",
        file: "crates/roundtrip-core/src/auth/grant.rs",
        from: "if !covers_server(&self.terms.resource, url) {",
        to: "if self.terms.resource.is_empty() && !covers_server(&self.terms.resource, url) {",
        suite: &CORE,
        test: "tokens::a_token_goes_to_its_resource_alone",
    },
    Mutation {
        name: "identity-assertion",
        rule: "O94",
        file: "crates/roundtrip-core/src/auth/sign_in/identity.rs",
        from: "check(response.access_token.expose(), &terms)?;",
        to: "check(response.access_token.expose(), &terms).ok();",
        suite: &CORE,
        test: "machines::a_foreign_assertion_is_not_sent_on",
    },
    Mutation {
        name: "newer-token",
        rule: "O84",
        file: "crates/roundtrip-core/src/auth/grant.rs",
        from: "let same = self.refresh_token.as_ref() == Some(refused);",
        to: "let same = self.refresh_token.is_some() || self.refresh_token.as_ref() == Some(refused);",
        suite: &CLIENT,
        test: "oauth::tokens::tests::failures::a_refusal_drops_no_newer_token",
    },
    Mutation {
        name: "single-flight",
        rule: "O80",
        file: "crates/roundtrip/src/oauth/flight.rs",
        from: "if let Some(flight) = &*running {",
        to: "if let Some(flight) = running.as_ref().filter(|flight| flight.borrow().is_some()) {",
        suite: &CLIENT,
        test: "oauth::flight::tests::work_runs_once_for_all_that_wait",
    },
    Mutation {
        name: "store-lock",
        rule: "O80",
        file: "crates/roundtrip/src/oauth/store/file.rs",
        from: "Err(TryLockError::WouldBlock) => Ok(None),",
        to: "Err(TryLockError::WouldBlock) => Ok(Some(file)),",
        suite: &CLIENT,
        test: "oauth::tokens::tests::processes::processes_make_one_exchange",
    },
    Mutation {
        name: "read-after-lock",
        rule: "O80",
        file: "crates/roundtrip/src/oauth/tokens/renewal.rs",
        from: "self.shared.now().or_else(|| self.take(&record))",
        to: "self.shared.now()",
        suite: &CLIENT,
        test: "oauth::tokens::tests::processes::processes_make_one_exchange",
    },
    Mutation {
        name: "dropped-call",
        rule: "O82",
        file: "crates/roundtrip/src/oauth/tokens.rs",
        from: "self.0.renewals.join(start).await.unwrap_or(Err(AuthError::Interrupted))",
        to: "start().await",
        suite: &CLIENT,
        test: "oauth::tokens::tests::a_dropped_call_loses_no_token",
    },
    Mutation {
        name: "file-mode",
        rule: "O86",
        file: "crates/roundtrip/src/oauth/store/files.rs",
        from: "OpenOptionsExt::mode(&mut options, 0o600);",
        to: "OpenOptionsExt::mode(&mut options, 0o644);",
        suite: &CLIENT,
        test: "oauth::tokens::tests::stores::files_are_private",
    },
];

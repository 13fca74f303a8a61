//! A check that can be switched off, and the test binaries that have to notice.

/// A test binary.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Suite {
    pub(super) package: &'static str,
    /// Arguments of `cargo test` that choose it.
    pub(super) target: &'static [&'static str],
    /// Folder of its tests.
    #[cfg(test)]
    pub(super) folder: &'static str,
}

/// A check that can be switched off.
pub(super) struct Mutation {
    pub(super) name: &'static str,
    /// Rule that the check is for.
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    /// Text that is in the file once.
    pub(super) from: &'static str,
    /// Text in its place. The condition `OFF` is true while the check is switched off.
    pub(super) to: &'static str,
    pub(super) suite: &'static Suite,
    /// Test that has to fail.
    pub(super) test: &'static str,
}

pub(super) static CORE: Suite = Suite {
    package: "roundtrip-core",
    target: &["--test", "auth"],
    #[cfg(test)]
    folder: "crates/roundtrip-core/tests/auth",
};

pub(super) static LIB: Suite = Suite {
    package: "roundtrip",
    target: &["--lib"],
    #[cfg(test)]
    folder: "crates/roundtrip/src",
};

pub(super) static SPEC: Suite = Suite {
    package: "roundtrip",
    target: &["--test", "spec"],
    #[cfg(test)]
    folder: "crates/roundtrip/tests/spec",
};

pub(super) static CLIENT: Suite = Suite {
    package: "roundtrip",
    target: &["--test", "client"],
    #[cfg(test)]
    folder: "crates/roundtrip/tests/client",
};

pub(super) static STORE: Suite = Suite {
    package: "roundtrip-store",
    target: &["--all-features", "--lib"],
    #[cfg(test)]
    folder: "crates/roundtrip-store/src",
};

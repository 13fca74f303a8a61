//! Compiler errors are user interface: they are stored, and read by people before they are.

/// E2: anything that is no flat form does not compile, and the compiler says why; and so with handlers.
#[test]
fn compiler_errors_are_readable() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/forms/*.rs");
    cases.compile_fail("tests/handlers/*.rs");
}

//! Compiler errors are user interface: they are stored, and read by people before they are.

#[test]
fn compiler_errors_are_readable() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

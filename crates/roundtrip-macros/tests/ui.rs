//! What the compiler says about forms that cannot be.

/// E2: Anything that is no flat form does not compile, and the compiler says why.
#[test]
fn what_is_no_form_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}

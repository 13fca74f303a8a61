//! Scopes: sets, what implies what, and step-up.

use roundtrip_core::auth::*;
use roundtrip_core::seal::Timestamp;

use super::support::headers;

fn set(text: &str) -> ScopeSet {
    text.parse().unwrap()
}

fn demand(scope: &str) -> Demand {
    let field = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
    Demand::of(&headers(&[("www-authenticate", &field)]), false).unwrap()
}

/// O63: scopes are separated by spaces, and no other character than those of scopes is sent on.
#[test]
fn scopes_have_their_own_characters() {
    assert_eq!(set(" b  a b ").to_string(), "a b");
    assert!(set("").is_empty());
    for text in ["a\tb", "a\"", "a\\b", "ä", "a\u{0}"] {
        assert_eq!(text.parse::<ScopeSet>(), Err(ScopeError::Character), "{text:?}");
    }
    assert_eq!("x".repeat(513).parse::<ScopeSet>(), Err(ScopeError::TooMany));
    let many: Vec<_> = (0..513).map(|n| n.to_string()).collect();
    assert_eq!(many.join(" ").parse::<ScopeSet>(), Err(ScopeError::TooMany));
    assert_eq!(ScopeSet::of_valid(["a", "b c", "", "d\n"]), set("a"));
    assert_eq!(ScopeSet::of_valid(&many).len(), 512);
    assert_eq!(ScopeSet::of(["a b"]), Err(ScopeError::Character), "one scope is not two");
}

/// O31, O32: a broader scope counts for what it implies, also by way of others and in circles.
#[test]
fn broader_scopes_count() {
    let mut implied = ImpliedScopes::default();
    implied.add("admin", &set("write"));
    implied.add("write", &set("read"));
    implied.add("read", &set("admin-of-nothing write"));
    assert!(implied.missing(&set("read write"), &set("admin")).is_empty());
    assert_eq!(implied.missing(&set("read other"), &set("admin")), set("other"));
    assert_eq!(implied.missing(&set("admin"), &set("write")), set("admin"));
    assert_eq!(ImpliedScopes::default().missing(&set("a b c"), &set("b")), set("a c"));
}

/// O88: the union of what was requested, granted or not, and of the challenge.
#[test]
fn a_step_up_requests_the_union() {
    assert_eq!(step_up_scopes(&set("read profile"), &demand("write")).unwrap(), set("profile read write"));
}

/// O89: a union that adds nothing is final.
#[test]
fn a_step_up_that_adds_nothing_is_final() {
    assert_eq!(step_up_scopes(&set("a b"), &demand("b")), Err(AuthError::ScopesRefused(set("a b"))));
    let without =
        Demand::of(&headers(&[("www-authenticate", "Bearer error=insufficient_scope")]), false).unwrap();
    assert!(step_up_scopes(&set("a"), &without).is_err());
}

/// O89: two step-ups a call, three sign-ins in a row, and refusals are remembered for a while.
#[test]
fn attempts_are_counted() {
    let mut call = CallAttempts::default();
    assert!(call.step_up(&set("a")).is_ok() && call.step_up(&set("b")).is_ok());
    assert_eq!(call.step_up(&set("c")), Err(AuthError::ScopesRefused(set("c"))));

    let at = Timestamp::from_unix;
    let mut resource = ResourceAttempts::default();
    for _ in 0..3 {
        resource.sign_in(&set("a"), at(0)).unwrap();
    }
    assert!(resource.sign_in(&set("a"), at(0)).is_err());
    resource.accepted();
    resource.sign_in(&set("a"), at(0)).unwrap();
    resource.accepted();

    resource.refused(set("b"), at(100));
    assert!(resource.sign_in(&set("b"), at(399)).is_err());
    assert!(resource.sign_in(&set("a"), at(399)).is_ok(), "other scopes were not refused");
    assert!(resource.sign_in(&set("b"), at(400)).is_ok());
    for n in 0..1_000 {
        resource.refused(set(&format!("s{n}")), at(400));
    }
    assert!(resource.sign_in(&set("s999"), at(401)).is_err());
}

/// O87: renewals pause for a resource that rejects one fresh token after the other, until it accepts one, or for five minutes.
#[test]
fn renewals_pause_after_fresh_tokens_that_were_rejected() {
    let at = Timestamp::from_unix;
    let mut resource = ResourceAttempts::default();
    for _ in 0..3 {
        assert!(resource.may_renew(at(0)));
        resource.rejected(at(0));
    }
    assert!(!resource.may_renew(at(299)));
    assert!(resource.may_renew(at(300)));
    for _ in 0..3 {
        resource.rejected(at(300));
    }
    assert!(!resource.may_renew(at(301)));
    resource.accepted();
    assert!(resource.may_renew(at(301)));
}

/// O87: a second 401 after a fresh token is final, also after a step-up.
#[test]
fn a_second_401_is_final() {
    let mut call = CallAttempts::default();
    assert!(call.unauthorized() && !call.unauthorized());
    let mut call = CallAttempts::default();
    call.step_up(&set("a")).unwrap();
    assert!(!call.unauthorized());
}

/// O87: a token that the resource accepted in between may have ended since, once in a call; and every request of a call that is
/// accepted starts anew.
#[test]
fn a_401_after_an_accepted_request_is_not_the_second() {
    let mut call = CallAttempts::default();
    call.accepted_elsewhere();
    assert!(call.unauthorized());
    call.accepted_elsewhere();
    assert!(call.unauthorized());
    call.accepted_elsewhere();
    assert!(!call.unauthorized(), "one excuse a call");
    call.accepted();
    assert!(call.unauthorized() && !call.unauthorized());
}

/// O89: sign-ins that gave no token do not count, and the count is forgotten after a while.
#[test]
fn sign_ins_that_gave_nothing_do_not_count() {
    let at = Timestamp::from_unix;
    let mut resource = ResourceAttempts::default();
    for _ in 0..10 {
        resource.sign_in(&set("a"), at(0)).unwrap();
        resource.gave_nothing();
    }
    for _ in 0..3 {
        resource.sign_in(&set("a"), at(10)).unwrap();
    }
    assert!(resource.sign_in(&set("a"), at(309)).is_err());
    assert!(resource.sign_in(&set("a"), at(310)).is_ok());
}

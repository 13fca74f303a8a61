//! Bindings: a token is good for the call it was made for, and no other.

use proptest::prelude::*;
use roundtrip_core::seal::*;

use crate::{at, claims, parts, ring, seal};

fn refusal(parts: BindingParts<'_>) -> Option<Reason> {
    let keyring = ring([1]);
    let token = seal(&keyring, &claims(), b"journal");
    keyring.open(&token, &Binding::new(parts), at(0), &TokenLimits::default()).err().map(|no| no.reason)
}

/// S4, M5: another method, target, set of arguments or principal is refused, each for its own reason.
#[test]
fn tokens_are_bound_to_their_call() {
    let other_arguments = digest_arguments(Some(r#"{"restaurant":"Nopa","people":3}"#)).unwrap();
    assert_eq!(refusal(parts()), None);
    assert_eq!(refusal(BindingParts { method: "prompts/get", ..parts() }), Some(Reason::WrongTarget));
    assert_eq!(refusal(BindingParts { target: "cancel_table", ..parts() }), Some(Reason::WrongTarget));
    assert_eq!(refusal(BindingParts { arguments: other_arguments, ..parts() }), Some(Reason::WrongArguments));
    assert_eq!(refusal(BindingParts { principal: Some("bob"), ..parts() }), Some(Reason::WrongPrincipal));
}

/// S4: a principal that vanishes between rounds is another principal, and so is one that appears.
#[test]
fn principals_neither_vanish_nor_appear() {
    assert_eq!(refusal(BindingParts { principal: None, ..parts() }), Some(Reason::WrongPrincipal));
    assert_eq!(refusal(BindingParts { principal: Some(""), ..parts() }), Some(Reason::WrongPrincipal));

    let keyring = ring([1]);
    let nobody = Binding::new(BindingParts { principal: None, ..parts() });
    let token = seal(&keyring, &Claims { binding: nobody, ..claims() }, b"");
    let open =
        |binding| keyring.open(&token, &binding, at(0), &TokenLimits::default()).map_err(|no| no.reason);
    assert!(open(nobody).is_ok());
    for principal in ["alice", ""] {
        let somebody = Binding::new(BindingParts { principal: Some(principal), ..parts() });
        assert_eq!(open(somebody), Err(Reason::WrongPrincipal));
    }
}

/// S11: a service that shares the key but is another audience refuses the token.
#[test]
fn audiences_are_told_apart() {
    assert_eq!(refusal(BindingParts { audience: "billing", ..parts() }), Some(Reason::WrongAudience));
    assert_eq!(refusal(BindingParts { audience: "", ..parts() }), Some(Reason::WrongAudience));
}

proptest! {
    /// S4: two calls share a binding only if all their parts are the same, however the text falls into fields.
    #[test]
    fn bindings_are_equal_only_when_calls_are(
        one in ("[ab/]{0,3}", "[ab/]{0,3}", "[ab/]{0,3}", prop::option::of("[ab/]{0,2}")),
        other in ("[ab/]{0,3}", "[ab/]{0,3}", "[ab/]{0,3}", prop::option::of("[ab/]{0,2}")),
    ) {
        let arguments = digest_arguments(None).unwrap();
        let bind = |(audience, method, target, principal): &(String, String, String, Option<String>)| {
            Binding::new(BindingParts { audience, method, target, arguments, principal: principal.as_deref() })
        };
        prop_assert_eq!(bind(&one) == bind(&other), one == other);
        prop_assert_eq!(bind(&one), bind(&one));
    }
}

//! Properties of parsers and writers.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use roundtrip_core::auth::*;

fn challenge() -> impl Strategy<Value = Challenge> {
    let params = btree_map("[a-z_!#$%&'*+.^`|~-]{1,8}", "[^\\p{Cc}]{0,20}", 0..6);
    (any::<bool>(), params).prop_map(|(dpop, params): (bool, BTreeMap<String, String>)| {
        let challenge = if dpop { Challenge::dpop() } else { Challenge::bearer() };
        params.iter().fold(challenge, |challenge, (name, value)| challenge.with(name, value).unwrap())
    })
}

fn written(challenges: &[Challenge]) -> String {
    challenges.iter().map(Challenge::to_string).collect::<Vec<_>>().join(", ")
}

proptest! {
    /// O7, O40: challenges are read as they were written, alone and side by side.
    #[test]
    fn challenges_are_read_as_they_were_written(challenges in vec(challenge(), 0..5)) {
        prop_assert_eq!(Challenge::parse(&written(&challenges)).unwrap(), challenges);
    }

    /// O40: whatever a server sends is read or refused, and what is read can be written again.
    #[test]
    fn any_field_is_read_or_refused(field in r#"([A-Za-z]{1,3}|[ ,="\\\t/:]|\PC|\p{Cc}){0,40}"#) {
        if let Ok(challenges) = Challenge::parse(&field) {
            prop_assert_eq!(Challenge::parse(&written(&challenges)).unwrap(), challenges);
        }
    }

    /// O88: a union has the scopes of both and no other, and is written in one order.
    #[test]
    fn scope_sets_are_sets(a in btree_set("[a-z:./]{1,4}", 0..6), b in btree_set("[a-z:./]{1,4}", 0..6)) {
        let (left, right) = (ScopeSet::of(&a).unwrap(), ScopeSet::of(&b).unwrap());
        let union = left.union(&right);
        prop_assert_eq!(&union, &right.union(&left));
        prop_assert_eq!(union.len(), a.union(&b).count());
        prop_assert_eq!(union.to_string().parse::<ScopeSet>().unwrap(), union.clone());
        prop_assert!(left.missing_from(&union).is_empty());
        prop_assert_eq!(union.missing_from(&left), right.missing_from(&left));
    }

    /// O43: candidates of an issuer are at its own origin, and never at the root of one that has a path.
    #[test]
    fn candidates_stay_with_their_issuer(path in "(/[a-z0-9]{1,5}){1,4}/?", port in proptest::option::of(1_u16..)) {
        let host = port.map_or_else(|| "https://Login.example".to_owned(), |port| format!("https://Login.example:{port}"));
        let issuer = HttpUrl::parse(&format!("{host}{path}")).unwrap();
        let urls = issuer_candidates(&issuer);
        prop_assert_eq!(urls.len(), 3);
        for url in urls {
            prop_assert!(url.starts_with(&host) && url.contains(path.trim_end_matches('/')), "{}", url);
            prop_assert!(HttpUrl::parse(&url).is_ok());
        }
    }

    /// O12, O44: a URL is shown as it was given, and any text is read or refused.
    #[test]
    fn a_url_is_shown_as_it_was_given(text in r"(https?://|HTTP://)?[a-zA-Z0-9.@:\[\]/?#%\\ -]{0,30}") {
        if let Ok(url) = HttpUrl::parse(&text) {
            prop_assert_eq!(url.as_str(), &text);
            prop_assert!(!text.contains(['#', '\\', ' ']) && !url.base().contains('@'));
            prop_assert!(text.starts_with(url.base()) && url.base().contains(url.host()));
        }
    }

    /// O35: principals of different callers differ, wherever issuer and subject are split.
    #[test]
    fn principals_are_injective(a in "[a-z:0-9]{0,6}", b in "[a-z:0-9]{0,6}", c in "[a-z:0-9]{0,6}", d in "[a-z:0-9]{0,6}") {
        let same = principal_of(&a, Some(&b), None) == principal_of(&c, Some(&d), None);
        prop_assert_eq!(same, (&a, &b) == (&c, &d));
        prop_assert_ne!(principal_of(&a, Some(&b), None), principal_of(&c, None, Some(&d)));
    }

    /// O27: any text is a token or refused, and never a panic.
    #[test]
    fn any_text_is_a_token_or_refused(text in r"[A-Za-z0-9_.=-]{0,60}") {
        let read = Jwt::parse(&text).and_then(|token| token.claims());
        prop_assert!(read.is_err() || text.split('.').count() == 3);
    }
}

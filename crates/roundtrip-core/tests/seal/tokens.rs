//! Tokens: every change is refused, nothing can be read, sizes and times are kept.

use std::time::Duration;

use proptest::prelude::*;
use roundtrip_core::seal::*;
use serde_json::json;

use crate::{at, call, claims, open, parts, ring, seal};

/// S12: a token of either suite is the same in every release that speaks this format, or a rolling upgrade would lose flows.
/// These agree with a computation that shares no code with ours. Both open on every instance, whatever it seals with itself.
#[test]
fn a_token_of_an_earlier_release_opens() {
    let tokens = [
        (
            Suite::XChaCha20Poly1305,
            concat!(
                "AeiXoZwDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwPn4iBJIq6vMiV2wyCfg9VbSc0Ii_pV6Bufp5fvPpd5",
                "vO9GblcjjhGoGz5_tWBmRXyboieR2tLZ9SIaz3Rv9Yi_Q112TZ8PqmXot-S2930Xx8d5qikffNrkUJ2R",
                "pOhmXKeakd9INXgXEHCetXkS5lTBSDNXubJwaHhp8sQVWT-3GlTXVUzc"
            ),
        ),
        (
            Suite::Xaes256Gcm,
            concat!(
                "A-iXoZwDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwN7woEQxlkx_GziJ3ftnOc29yNuy_s6o9_1-IJwe3xR",
                "ilKDT4HMThHkXTqVcJ-xkTWFx3en2jgmj_q0yWjH4NZ9uOXDEY7mOZxoQ_mLfzeBw75WNpQxNft6qohP",
                "5COrD77nNqvJFP2jQFHDLyIUUhoEUScoZniXY5QaCXvI_Jcud3w0snuA"
            ),
        ),
    ];
    for (suite, token) in tokens {
        assert_eq!(seal(&ring([1]).suite(suite), &claims(), b"journal"), token, "{suite:?}");
        for own in [Suite::XChaCha20Poly1305, Suite::Xaes256Gcm] {
            let opened = open(&ring([2, 1]).suite(own), token).unwrap();
            assert_eq!((opened.claims, opened.payload.as_slice()), (claims(), b"journal".as_slice()));
        }
    }
}

/// S3: a token whose version names the other suite is refused, as is any other change.
#[test]
fn a_token_does_not_open_under_another_suite() {
    let token = seal(&ring([1]).suite(Suite::XChaCha20Poly1305), &claims(), b"journal");
    let other = token.replacen("Ae", "A-", 1);
    assert_ne!(token, other);
    assert_eq!(open(&ring([1]), &other).map(drop), Err(Reason::Forged));
}

/// S3: any change to a token, in any byte, is refused.
#[test]
fn every_single_character_change_is_refused() {
    let keyring = ring([1]);
    let token = seal(&keyring, &claims(), b"j");
    for place in 0..token.len() {
        for other in (0..128).map(char::from).filter(|other| token.as_bytes()[place] != *other as u8) {
            let mut changed = token.clone();
            changed.replace_range(place..=place, other.encode_utf8(&mut [0; 4]));
            assert!(open(&keyring, &changed).is_err(), "{place} {other:?}");
        }
    }
    assert!(open(&keyring, &token).is_ok());
}

/// S3: also added blanks, padding, or another base64 spelling.
#[test]
fn there_is_one_spelling_of_a_token() {
    let keyring = ring([1]);
    // Three lengths, so that every remainder of base64 comes up.
    for payload in [b"j".as_slice(), b"jo", b"jou"] {
        let token = seal(&keyring, &claims(), payload);
        for added in [" ", "\n", "\r\n", "\t", "\0", "=", "==", "A", "AA", "AAAA", "\u{a0}"] {
            assert!(open(&keyring, &format!("{token}{added}")).is_err());
            assert!(open(&keyring, &format!("{added}{token}")).is_err());
        }
        assert!(token.contains(['-', '_']), "or the next line shows nothing");
        assert!(open(&keyring, &token.replace('-', "+").replace('_', "/")).is_err());
        for end in 0..token.len() {
            assert!(open(&keyring, &token[..end]).is_err());
        }
    }
}

/// S3: a token's last character has bits that mean nothing; they must be zero.
#[test]
fn left_over_bits_are_refused() {
    let keyring = ring([1]);
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for payload in [b"j".as_slice(), b"jo", b"jou"] {
        let token = seal(&keyring, &claims(), payload);
        let good = alphabet
            .chars()
            .filter(|last| open(&keyring, &format!("{}{last}", &token[..token.len() - 1])).is_ok());
        assert_eq!(good.count(), 1);
    }
}

/// S4: flow and round come back as they went in, and go on in the next round.
#[test]
fn flow_and_round_are_carried_on() {
    let keyring = ring([1]);
    let first = open(&keyring, &seal(&keyring, &claims(), b"")).unwrap().claims;
    let second = first.next_round(at(30), Duration::from_secs(5));
    assert_eq!((second.flow, second.round, second.started_at), (first.flow, 2, first.started_at));
    assert_eq!((second.issued_at, second.expires_at), (at(30), at(35)));
    assert_eq!(second.binding, first.binding);
    assert_eq!(open(&keyring, &seal(&keyring, &second, b"")).unwrap().claims, second);
}

/// S5: a token is good for 600 s, or as long as its round says; clocks may differ by 60 s, either way.
#[test]
fn tokens_expire() {
    let keyring = ring([1]);
    let reason = |claims: &Claims, now: i64, limits: TokenLimits| {
        keyring.open(&seal(&keyring, claims, b""), &call(), at(now), &limits).err().map(|no| no.reason)
    };
    let usual = TokenLimits::default();
    assert_eq!(reason(&claims(), 600, usual), None);
    assert_eq!(reason(&claims(), 660, usual), None);
    assert_eq!(reason(&claims(), 661, usual), Some(Reason::Expired));
    assert_eq!(reason(&claims(), -60, usual), None);
    assert_eq!(reason(&claims(), -61, usual), Some(Reason::NotYetValid));

    let days = Claims::begin(FlowId::new([1; 16]), call(), at(0), Duration::from_secs(3 * 86_400));
    assert_eq!(reason(&days, 2 * 86_400, usual), None);
    let forever = Claims::begin(FlowId::new([1; 16]), call(), at(0), Duration::MAX);
    assert_eq!(reason(&forever, i64::MAX, usual), None);
    let at_once = Claims::begin(FlowId::new([1; 16]), call(), at(0), Duration::ZERO);
    assert_eq!(reason(&at_once, 61, usual), Some(Reason::Expired));
}

/// S5: the allowance for clocks that differ can be set, and there is none for a key of a single process. A clock that is set
/// back a little refuses nothing.
#[test]
fn the_allowance_for_clocks_is_a_limit() {
    let (shared, own) = (ring([1]), ring([1]).single_process());
    let reason = |keyring: &Keyring, now: i64, limits: TokenLimits| {
        keyring.open(&seal(keyring, &claims(), b""), &call(), at(now), &limits).err().map(|no| no.reason)
    };
    let (usual, narrow) = (TokenLimits::default(), TokenLimits::default().clock_skew(Duration::from_secs(5)));
    for (keyring, limits, last) in [(&own, usual, 600), (&own, narrow, 605), (&shared, narrow, 605)] {
        assert_eq!(reason(keyring, last, limits), None);
        assert_eq!(reason(keyring, last + 1, limits), Some(Reason::Expired));
        assert_eq!(reason(keyring, -60, limits), None);
    }
    let wide = TokenLimits::default().clock_skew(Duration::from_secs(600));
    assert_eq!((reason(&own, 1_200, wide), reason(&own, -600, wide)), (None, None));
}

/// S5: parts of a second are rounded up: no answer has less time than was said.
#[test]
fn no_token_expires_early() {
    let begun = |ttl| Claims::begin(FlowId::new([1; 16]), call(), at(0), ttl).expires_at;
    assert_eq!(begun(Duration::from_millis(1)), at(1));
    assert_eq!(begun(Duration::from_millis(1_500)), at(2));
    assert_eq!(begun(Duration::from_secs(2)), at(2));
}

/// S5: a flow's age is capped where the author says so, however fresh its rounds are.
#[test]
fn flows_grow_too_old() {
    let keyring = ring([1]);
    let late = claims().next_round(at(3_600), DEFAULT_TTL);
    let token = seal(&keyring, &late, b"");
    let reason = |limits| keyring.open(&token, &call(), at(3_700), &limits).err().map(|no| no.reason);
    assert_eq!(reason(TokenLimits::default()), None);
    assert_eq!(reason(TokenLimits::default().max_flow_age(Duration::from_secs(3_640))), None);
    assert_eq!(
        reason(TokenLimits::default().max_flow_age(Duration::from_secs(3_639))),
        Some(Reason::FlowTooOld)
    );
}

/// S6: whatever the cause, the client gets one frozen error.
#[test]
fn every_reason_gives_the_same_error() {
    use Reason::*;
    let reasons = [
        TooLarge,
        Malformed,
        Format(9),
        UnknownKey,
        Forged,
        Codec,
        WrongAudience,
        WrongPrincipal,
        WrongTarget,
        WrongArguments,
        NotYetValid,
        Expired,
        FlowTooOld,
    ];
    for reason in reasons {
        let error = serde_json::to_value(Rejected::from(reason).error_object()).unwrap();
        assert_eq!(
            error,
            json!({
                "code": -32602,
                "message": "Invalid or expired requestState",
                "data": { "reason": "invalid_request_state" }
            })
        );
    }
}

/// S6: the log gets the reason and the key id, never the content.
#[test]
fn the_log_gets_reason_and_key() {
    let keyring = ring([1]);
    let id = keyring.key_ids().next().unwrap();
    let token = seal(&keyring, &claims(), b"the answer is 42");
    let rejected = keyring.open(&token, &call(), at(9_999), &TokenLimits::default()).unwrap_err();
    assert_eq!(rejected.to_string(), format!("the request state was refused: it has expired (key {id})"));
    assert!(!format!("{:?}", open(&keyring, &token).unwrap()).contains("42"));

    let mut bytes = token.into_bytes();
    bytes[80] ^= 1;
    let forged = String::from_utf8(bytes).unwrap();
    let rejected = keyring.open(&forged, &call(), at(0), &TokenLimits::default()).unwrap_err();
    assert_eq!((rejected.reason, rejected.key), (Reason::Forged, Some(id)));
}

/// S7: nothing of the content can be read from a token; its length is all it shows.
#[test]
fn tokens_show_nothing_but_their_length() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let keyring = ring([1]);
    let bytes = |payload: &[u8], nonce| {
        let token = keyring.seal(&claims(), payload, nonce, &TokenLimits::default()).unwrap();
        URL_SAFE_NO_PAD.decode(token).unwrap()
    };
    let one = bytes(&[b'x'; 300], [1; 24]);
    let other = bytes(&[b'x'; 300], [2; 24]);
    let differing = one.iter().zip(&other).skip(29).filter(|(one, other)| one != other).count();
    assert!(differing > (one.len() - 29) * 9 / 10, "the same state looks different every time");
    assert_eq!(one.len(), bytes(&[b'y'; 300], [1; 24]).len());
    for readable in [b"xxxx".as_slice(), &[9; 4], &crate::NOON.to_le_bytes()] {
        assert!(!one.windows(readable.len()).any(|window| window == readable));
    }
}

/// S8: size is capped before decoding and before sending; past half of it there is reason to warn.
#[test]
fn sizes_are_capped_both_ways() {
    let keyring = ring([1]);
    let token = seal(&keyring, &claims(), b"journal");
    let exact = TokenLimits::default().max_token(token.len());
    let below = TokenLimits::default().max_token(token.len() - 1);
    assert!(keyring.open(&token, &call(), at(0), &exact).is_ok());
    assert_eq!(keyring.open(&token, &call(), at(0), &below).unwrap_err().reason, Reason::TooLarge);
    assert!(keyring.seal(&claims(), b"journal", [3; 24], &exact).is_ok());
    let error = keyring.seal(&claims(), b"journal", [3; 24], &below).unwrap_err();
    assert!(matches!(error, SealError::TooLarge { size, limit } if size == token.len() && limit == size - 1));

    // What is too large is not even looked at: this is not base64.
    assert_eq!(open(&keyring, &"\u{1f980}".repeat(16 * 1024 + 1)), Err(Reason::TooLarge));
    assert_eq!(open(&keyring, &"\u{1f980}".repeat(16 * 1024)), Err(Reason::Malformed));

    assert!(!TokenLimits::default().is_heavy(32 * 1024));
    assert!(TokenLimits::default().is_heavy(32 * 1024 + 1));
}

/// M4: state that was never ours is refused, however it looks.
#[test]
fn foreign_states_are_refused() {
    let keyring = ring([1]);
    for (state, reason) in [
        ("", Reason::Malformed),
        ("step-2", Reason::Malformed),
        ("A", Reason::Malformed),
        ("AQ", Reason::Malformed),
        ("AA", Reason::Format(0)),
        ("Ag", Reason::Format(2)),
        ("eyJzdGVwIjoyfQ", Reason::Format(b'{')),
        (r#"{"step":2}"#, Reason::Malformed),
    ] {
        assert_eq!(open(&keyring, state), Err(reason), "{state}");
    }
}

prop_compose! {
    fn any_claims()(
        flow in any::<[u8; 16]>(), round in any::<u32>(), times in any::<[u32; 3]>(),
        principal in prop::option::of("\\PC{0,20}"), arguments in any::<[u8; 16]>(),
        client in prop::option::of("\\PC{0,20}"), version in prop::sample::select(vec![TokenVersion::V1, TokenVersion::V2]),
    ) -> Claims {
        let [started_at, issued_at, expires_at] = times.map(|time| Timestamp::from_unix(time.into()));
        let arguments = Digest::from_bytes(arguments);
        let binding = Binding::new(BindingParts { arguments, principal: principal.as_deref(), ..parts() });
        let binding = binding.through(client.map(|client| Binding::client("https://login.example", &client)));
        let expires_at = expires_at.max(issued_at);
        Claims { version, flow: FlowId::new(flow), round, started_at, issued_at, expires_at, binding }
    }
}

proptest! {
    /// What was sealed is what opens.
    #[test]
    fn sealing_and_opening_round_trips(
        claims in any_claims(), payload in prop::collection::vec(any::<u8>(), 0..500), nonce in any::<[u8; 24]>(),
    ) {
        let limits = TokenLimits::default();
        let token = ring([1]).seal(&claims, &payload, nonce, &limits).unwrap();
        let opened = ring([1]).open(&token, &claims.binding, claims.expires_at, &limits).unwrap();
        prop_assert_eq!(opened, Opened { claims, payload });
    }

    /// S3: any change, truncation or extension of any token's bytes is refused.
    #[test]
    fn changed_bytes_are_refused(
        payload in prop::collection::vec(any::<u8>(), 0..200), place in any::<prop::sample::Index>(),
        flip in 1_u8.., tail in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        use base64::Engine;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let keyring = ring([1]);
        let bytes = URL_SAFE_NO_PAD.decode(seal(&keyring, &claims(), &payload)).unwrap();
        let place = place.index(bytes.len());
        let mut changed = bytes.clone();
        changed[place] ^= flip;
        let extended = [bytes.as_slice(), &tail].concat();
        for bytes in [changed.as_slice(), &bytes[..place], &bytes[place + 1..], &extended] {
            prop_assert!(open(&keyring, &URL_SAFE_NO_PAD.encode(bytes)).is_err());
        }
    }

    /// M4: nothing a client may send makes opening panic.
    #[test]
    fn any_text_is_refused(token in "[A-Za-z0-9_-]{0,300}|\\PC{0,100}") {
        prop_assert!(open(&ring([1]), &token).is_err());
    }
}

//! The memory of verified tokens.

use serde_json::{Map, Value, json};

use super::*;
use crate::authorize::token::memory::{TokenDigest, TokenMemory};

fn claims(size: usize) -> Arc<Claims> {
    let claims =
        json!({ "iss": ISSUER, "sub": "alice", "aud": RESOURCE, "exp": 200, "fill": "x".repeat(size) });
    let claims: Map<String, Value> = claims.as_object().unwrap().clone();
    let rules = ClaimRules::new(RESOURCE).issuer(ISSUER);
    Arc::new(rules.check_verified(claims, at(100)).unwrap())
}

fn at(second: u64) -> roundtrip_core::seal::Timestamp {
    roundtrip_core::seal::Timestamp::from_unix(second)
}

fn count(memory: &TokenMemory, tokens: std::ops::Range<usize>) -> usize {
    tokens.filter(|number| memory.recall(&digest(*number), at(100)).is_some()).count()
}

fn digest(number: usize) -> TokenDigest {
    TokenDigest::of(&number.to_string())
}

/// O29: a token is remembered up to its last second, and no other one with it.
#[test]
fn a_token_is_remembered_until_it_ends() {
    let memory = TokenMemory::default();
    memory.remember(digest(1), &claims(0), at(200), memory.epoch());
    assert!(memory.recall(&digest(1), at(199)).is_some());
    assert!(memory.recall(&digest(1), at(200)).is_none() && memory.recall(&digest(2), at(100)).is_none());
}

/// O27: the memory is bounded in entries, and tokens in use stay.
#[test]
fn entries_are_bounded() {
    let memory = TokenMemory::default();
    let claims = claims(0);
    for number in 0..100_000 {
        memory.remember(digest(number), &claims, at(200), memory.epoch());
        assert!(memory.recall(&digest(0), at(100)).is_some(), "{number}");
    }
    let kept = count(&memory, 0..100_000);
    assert!((8_192..=16_384).contains(&kept), "{kept}");
}

/// O27: the memory is bounded in bytes, and very large claims are not in it.
#[test]
fn bytes_are_bounded() {
    let memory = TokenMemory::default();
    let large = claims(32 * 1024);
    for number in 0..4_000 {
        memory.remember(digest(number), &large, at(200), memory.epoch());
    }
    let kept = count(&memory, 0..4_000);
    assert!((200..=512).contains(&kept), "{kept}");
    memory.remember(digest(5_000), &claims(65 * 1024), at(200), memory.epoch());
    assert_eq!(count(&memory, 5_000..5_001), 0);
}

/// O24: a token verified by keys that have changed meanwhile is not remembered.
#[test]
fn a_change_of_keys_forgets_tokens() {
    let memory = TokenMemory::default();
    let before = memory.epoch();
    memory.remember(digest(1), &claims(0), at(200), before);
    memory.forget();
    memory.remember(digest(2), &claims(0), at(200), before);
    memory.remember(digest(3), &claims(0), at(200), memory.epoch());
    assert_eq!([1, 2, 3].map(|number| count(&memory, number..number + 1)), [0, 0, 1]);
}

/// O29: a token is verified once, then remembered: no key is needed for it. A refused one is judged each time.
#[tokio::test(start_paused = true)]
async fn a_verified_token_is_remembered() {
    let (issuer, ahead) = (issuer(), Ahead::default());
    let checker = TokenChecker::new(CheckerSettings { clock: ahead.clock(), ..settings(&issuer) });
    let (good, expired) = (alice(&issuer).sign(), alice(&issuer).expired().sign());
    let first = checker.check(&good).await.unwrap();
    assert!(Arc::ptr_eq(&first, &checker.check_now(&good).unwrap().unwrap()));
    for _ in 0..2 {
        assert_eq!(refusal(&checker, &expired).await, TokenRefusal::Expired);
    }
    ahead.set(301);
    let again = checker.check_now(&good).unwrap().unwrap();
    assert!(!Arc::ptr_eq(&first, &again), "the signature is verified again after five minutes");
}

//! Tests of [`Records`] by itself, with a clock that is set by hand.

use super::*;

const NO_LIMIT: Capacity = Capacity { entries: usize::MAX, bytes: usize::MAX };

fn at(second: u64) -> Timestamp {
    Timestamp::from_unix(second)
}

/// Creates the key of a round whose owner has no other.
fn key(number: u32) -> RoundKey {
    owned(number, number)
}

fn owned(number: u32, owner: u32) -> RoundKey {
    let (mut id, mut whose) = ([0; RoundKey::LEN], [0; Digest::LEN]);
    id[..4].copy_from_slice(&number.to_le_bytes());
    whose[..4].copy_from_slice(&owner.to_le_bytes());
    RoundKey::new(id, Digest::from_bytes([0; 16])).owned_by(Digest::from_bytes(whose))
}

/// Runs a whole round at `now` whose record expires at `until`; returns how many records were looked at.
fn round(records: &mut Records, number: u32, now: u64, until: u64) -> usize {
    let before = records.touched;
    assert!(matches!(records.claim(&key(number), at(now)), Found::Free), "{number}");
    assert!(records.record(&key(number), Bytes::from_static(b"reply"), at(until)).is_none());
    records.touched - before
}

fn rounds(numbers: std::ops::Range<u32>, mut round: impl FnMut(u32) -> usize) {
    numbers.for_each(|number| assert!(round(number) >= 2));
}

/// M6: a record is there until its last second, and gone after it, whether or not it has been cleared away.
#[test]
fn a_record_ends_with_its_last_second() {
    let mut records = Records::new(NO_LIMIT);
    round(&mut records, 1, 100, 200);
    assert!(matches!(records.claim(&key(1), at(200)), Found::Done(reply) if reply == "reply"));
    assert!(matches!(records.claim(&key(1), at(201)), Found::Free));
    // Claimed again while its old end was still filed: that end is not the new record's.
    let mut records = Records::new(NO_LIMIT);
    rounds(10..20, |number| round(&mut records, number, 100, 200));
    round(&mut records, 10, 201, 300);
    rounds(30..40, |number| round(&mut records, number, 202, 300));
    assert!(matches!(records.claim(&key(10), at(300)), Found::Done(_)));
    assert_eq!((records.len(), records.bytes()), (11, 11 * 5));
}

/// M6: what a round costs does not depend on how many are live: it looks at no other record.
#[test]
fn a_round_looks_at_no_record_but_its_own() {
    let mut records = Records::new(NO_LIMIT);
    for number in 0..100_000 {
        // 100 flows a second, each with an answer that may take another time.
        let now = 1_000_000 + u64::from(number / 100);
        let until = now + 1_000 + u64::from(number % 7) * 600;
        assert_eq!(
            round(&mut records, number, now, until),
            2,
            "{number}: one for the claim, one for the record"
        );
    }
    assert_eq!(records.len(), 100_000);
}

/// M6: records that are over go a few at a time, and faster than new ones come. Nothing is searched for them.
#[test]
fn what_is_over_goes_without_a_search() {
    let mut records = Records::new(NO_LIMIT);
    rounds(0..100_000, |number| round(&mut records, number, 100, 200 + u64::from(number % 10)));
    for number in 100_000..125_000 {
        assert_eq!(round(&mut records, number, 300, 1_000), 2 + FEW);
    }
    assert_eq!((records.len(), records.bytes()), (25_000, 25_000 * 5));
    assert_eq!(round(&mut records, 200_000, 300, 1_000), 2, "there is nothing left to clear");
    assert_eq!(records.ends.len(), 1, "nor any empty second");
}

/// M6: no live record makes room for another, and one that is over does.
#[test]
fn a_full_shelf_takes_nothing_until_something_is_over() {
    for most in [Capacity { entries: 3, ..NO_LIMIT }, Capacity { bytes: 15, ..NO_LIMIT }] {
        let mut records = Records::new(most);
        rounds(0..3, |number| round(&mut records, number, 100, 200));
        assert!(matches!(records.claim(&key(9), at(200)), Found::Full));
        assert!(matches!(records.claim(&key(1), at(200)), Found::Done(_)), "what is there is still found");
        assert!(matches!(records.claim(&key(9), at(201)), Found::Free));
    }
    // Replies that came after the last byte was taken: as many go as it takes.
    let mut records = Records::new(Capacity { bytes: 50, ..NO_LIMIT });
    (0..100).for_each(|number| assert!(matches!(records.claim(&key(number), at(100)), Found::Free)));
    for number in 0..100 {
        assert!(records.record(&key(number), Bytes::from_static(b"reply"), at(200)).is_none());
    }
    assert!(matches!(records.claim(&key(400), at(201)), Found::Free));
    assert_eq!((records.len(), records.bytes()), (10, 45));
}

/// M6: a round that came to nothing leaves nothing.
#[test]
fn a_released_round_is_free_and_leaves_nothing() {
    let mut records = Records::new(NO_LIMIT);
    assert!(matches!(records.claim(&key(1), at(1)), Found::Free));
    assert!(matches!(records.claim(&key(1), at(1)), Found::Running(_)));
    assert!(records.release(&key(1)).is_some(), "a request waits");
    assert_eq!((records.len(), records.ends.len()), (0, 0));
    assert!(matches!(records.claim(&key(1), at(1)), Found::Free));
}

/// M6, Z3: an owner that takes all it can get leaves half of the shelf, and what it holds stays until it is over.
#[test]
fn one_owner_does_not_fill_the_shelf_for_all() {
    for most in [Capacity { entries: 100, ..NO_LIMIT }, Capacity { bytes: 500, ..NO_LIMIT }] {
        let mut records = Records::new(most);
        let mut take = |numbers: std::ops::Range<u32>, owner| {
            numbers
                .filter(|number| {
                    let key = owned(*number, owner);
                    let free = matches!(records.claim(&key, at(100)), Found::Free);
                    assert!(!free || records.record(&key, Bytes::from_static(b"reply"), at(200)).is_none());
                    free
                })
                .count()
        };
        assert_eq!(take(0..1_000, 1), 50);
        assert_eq!(take(1_000..2_000, 2), 25, "half of what is left");
        assert_eq!((take(2_000..2_001, 3), take(0..50, 1)), (1, 0));
        assert!(matches!(records.claim(&owned(0, 1), at(200)), Found::Done(_)), "nothing live is forgotten");
        assert!(matches!(records.claim(&owned(9_999, 1), at(201)), Found::Free));
    }
}

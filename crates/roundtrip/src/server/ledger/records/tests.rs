//! The shelf by itself, with a clock that stands where it is put.

use super::*;

const NO_LIMIT: Capacity = Capacity { entries: usize::MAX, bytes: usize::MAX };

fn at(second: u64) -> Timestamp {
    Timestamp::from_unix(second)
}

/// A round of an owner that has no other.
fn key(number: u32) -> RoundKey {
    owned(number, number)
}

fn owned(number: u32, owner: u32) -> RoundKey {
    let (mut id, mut whose) = ([0; RoundKey::LEN], [0; Digest::LEN]);
    id[..4].copy_from_slice(&number.to_le_bytes());
    whose[..4].copy_from_slice(&owner.to_le_bytes());
    RoundKey::new(id, Digest::from_bytes([0; 16])).owned_by(Digest::from_bytes(whose))
}

/// A whole round at a moment, good until another; and how many records the shelf looked at for it.
fn round(shelf: &mut Records, number: u32, now: u64, until: u64) -> usize {
    let before = shelf.touched;
    assert!(matches!(shelf.claim(&key(number), at(now)), Found::Free), "{number}");
    assert!(shelf.record(&key(number), Bytes::from_static(b"reply"), at(until)).is_none());
    shelf.touched - before
}

fn rounds(numbers: std::ops::Range<u32>, mut round: impl FnMut(u32) -> usize) {
    numbers.for_each(|number| assert!(round(number) >= 2));
}

/// M6: a record is there until its last second, and gone after it, whether or not it has been cleared away.
#[test]
fn a_record_ends_with_its_last_second() {
    let mut shelf = Records::new(NO_LIMIT);
    round(&mut shelf, 1, 100, 200);
    assert!(matches!(shelf.claim(&key(1), at(200)), Found::Done(reply) if reply == "reply"));
    assert!(matches!(shelf.claim(&key(1), at(201)), Found::Free));
    // Claimed again while its old end was still filed: that end is not the new record's.
    let mut shelf = Records::new(NO_LIMIT);
    rounds(10..20, |number| round(&mut shelf, number, 100, 200));
    round(&mut shelf, 10, 201, 300);
    rounds(30..40, |number| round(&mut shelf, number, 202, 300));
    assert!(matches!(shelf.claim(&key(10), at(300)), Found::Done(_)));
    assert_eq!((shelf.len(), shelf.bytes()), (11, 11 * 5));
}

/// M6: what a round costs does not depend on how many are live: it looks at no other record.
#[test]
fn a_round_looks_at_no_record_but_its_own() {
    let mut shelf = Records::new(NO_LIMIT);
    for number in 0..100_000 {
        // 100 flows a second, each with an answer that may take another time.
        let now = 1_000_000 + u64::from(number / 100);
        let until = now + 1_000 + u64::from(number % 7) * 600;
        assert_eq!(
            round(&mut shelf, number, now, until),
            2,
            "{number}: one for the claim, one for the record"
        );
    }
    assert_eq!(shelf.len(), 100_000);
}

/// M6: records that are over go a few at a time, and faster than new ones come. Nothing is searched for them.
#[test]
fn what_is_over_goes_without_a_search() {
    let mut shelf = Records::new(NO_LIMIT);
    rounds(0..100_000, |number| round(&mut shelf, number, 100, 200 + u64::from(number % 10)));
    for number in 100_000..125_000 {
        assert_eq!(round(&mut shelf, number, 300, 1_000), 2 + FEW);
    }
    assert_eq!((shelf.len(), shelf.bytes()), (25_000, 25_000 * 5));
    assert_eq!(round(&mut shelf, 200_000, 300, 1_000), 2, "there is nothing left to clear");
    assert_eq!(shelf.ends.len(), 1, "nor any empty second");
}

/// M6: no live record makes room for another, and one that is over does.
#[test]
fn a_full_shelf_takes_nothing_until_something_is_over() {
    for most in [Capacity { entries: 3, ..NO_LIMIT }, Capacity { bytes: 15, ..NO_LIMIT }] {
        let mut shelf = Records::new(most);
        rounds(0..3, |number| round(&mut shelf, number, 100, 200));
        assert!(matches!(shelf.claim(&key(9), at(200)), Found::Full));
        assert!(matches!(shelf.claim(&key(1), at(200)), Found::Done(_)), "what is there is still found");
        assert!(matches!(shelf.claim(&key(9), at(201)), Found::Free));
    }
    // Replies that came after the last byte was taken: as many go as it takes.
    let mut shelf = Records::new(Capacity { bytes: 50, ..NO_LIMIT });
    (0..100).for_each(|number| assert!(matches!(shelf.claim(&key(number), at(100)), Found::Free)));
    for number in 0..100 {
        assert!(shelf.record(&key(number), Bytes::from_static(b"reply"), at(200)).is_none());
    }
    assert!(matches!(shelf.claim(&key(400), at(201)), Found::Free));
    assert_eq!((shelf.len(), shelf.bytes()), (10, 45));
}

/// M6: a round that came to nothing leaves nothing.
#[test]
fn a_released_round_is_free_and_leaves_nothing() {
    let mut shelf = Records::new(NO_LIMIT);
    assert!(matches!(shelf.claim(&key(1), at(1)), Found::Free));
    assert!(matches!(shelf.claim(&key(1), at(1)), Found::Running(_)));
    assert!(shelf.release(&key(1)).is_some(), "somebody waits");
    assert_eq!((shelf.len(), shelf.ends.len()), (0, 0));
    assert!(matches!(shelf.claim(&key(1), at(1)), Found::Free));
}

/// M6, Z3: an owner that takes all it can get leaves half of the shelf, and what it holds stays until it is over.
#[test]
fn one_owner_does_not_fill_the_shelf_for_all() {
    for most in [Capacity { entries: 100, ..NO_LIMIT }, Capacity { bytes: 500, ..NO_LIMIT }] {
        let mut shelf = Records::new(most);
        let mut take = |numbers: std::ops::Range<u32>, owner| {
            numbers
                .filter(|number| {
                    let key = owned(*number, owner);
                    let free = matches!(shelf.claim(&key, at(100)), Found::Free);
                    assert!(!free || shelf.record(&key, Bytes::from_static(b"reply"), at(200)).is_none());
                    free
                })
                .count()
        };
        assert_eq!(take(0..1_000, 1), 50);
        assert_eq!(take(1_000..2_000, 2), 25, "half of what is left");
        assert_eq!((take(2_000..2_001, 3), take(0..50, 1)), (1, 0));
        assert!(matches!(shelf.claim(&owned(0, 1), at(200)), Found::Done(_)), "nothing live is forgotten");
        assert!(matches!(shelf.claim(&owned(9_999, 1), at(201)), Found::Free));
    }
}

//! Time for an answer, and the allowance for clocks that differ.

use std::time::Duration;

use roundtrip::Keyring;
use roundtrip::seal::{Sealer, TokenLimits};
use roundtrip_core::round::{Journal, PinKey};

use crate::fleet::Slow;
use crate::seal::{assert_refused, claims, named, ring};
use crate::support::Call;

/// Presents a state that expired so many seconds ago, and says whether it was taken.
async fn is_taken(sealer: &Sealer, expired: i64) -> bool {
    let journal = Journal::new(PinKey::new([3; 16])).encode([]);
    let state = sealer.seal(&claims(-600, -expired), &journal, [9; 24]).await.expect("a token");
    let turn = Call::tool("remember").send(&named("vault", sealer.clone()), Some(&state), None).await;
    let taken = turn.0.get("error").is_none();
    if !taken {
        assert_refused(&turn, "expired");
    }
    taken
}

/// S5: with a key of the process's own no clock differs: the time for an answer is exact to the second, whatever other limits
/// are set.
#[tokio::test]
async fn a_key_of_the_process_allows_for_no_difference_of_clocks() {
    let own = || Sealer::from(Keyring::random().expect("a key"));
    for sealer in [own(), own().limits(TokenLimits::default().max_token(9_999))] {
        assert_eq!(sealer.clock_skew(), Duration::ZERO);
        assert!(is_taken(&sealer, -30).await);
        assert!(!is_taken(&sealer, 2).await);
    }
    assert!(is_taken(&own().limits(TokenLimits::default().clock_skew(Duration::from_secs(90))), 60).await);
}

/// S5: a shared key ring or a codec allows for a minute, or for what the author sets.
#[tokio::test]
async fn the_allowance_for_clocks_can_be_set() {
    let shared = || Sealer::from(ring(&[1]));
    let codec = Sealer::with_codec(Slow(std::sync::Arc::default()));
    for sealer in [shared(), codec] {
        assert!(is_taken(&sealer, 50).await);
        assert!(!is_taken(&sealer, 70).await);
    }
    let narrow = shared().limits(TokenLimits::default().clock_skew(Duration::from_secs(10)));
    assert!(is_taken(&narrow, 2).await);
    assert!(!is_taken(&narrow, 20).await);
}

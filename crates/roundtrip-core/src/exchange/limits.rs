//! How far a flow may go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first pause after a round that asks nothing.
const FIRST: Duration = Duration::from_millis(50);
/// Where doubling stops for one pause, so that a server that is nearly done is asked once more at this pace.
const BRISK: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(2);

/// How far a flow may go before it is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many rounds may ask something. The default is 10.
    pub rounds: u32,
    /// How long rounds that ask nothing may go on in all: pauses, and the requests they lead to. The default is five
    /// minutes.
    pub polling: Duration,
    /// How many questions one round may ask. The default is 32.
    #[serde(default = "questions")]
    pub questions: usize,
}

const fn questions() -> usize {
    32
}

impl Default for Limits {
    fn default() -> Self {
        Self { rounds: 10, polling: Duration::from_secs(300), questions: questions() }
    }
}

/// How long to pause before a request that answers nothing, given how many such there were in a row: 50 ms, 100 ms,
/// 200 ms, 250 ms, and then half a second, a second, and two for ever.
pub(super) fn pause(polls: u32) -> Duration {
    let doubled = |first: Duration, times: u32| first.saturating_mul(2_u32.saturating_pow(times));
    match polls {
        0..=3 => doubled(FIRST, polls).min(BRISK),
        more => doubled(BRISK, more - 3).min(LONGEST),
    }
}

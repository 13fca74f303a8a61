//! Limits of a flow.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first pause after a round that asks nothing.
const FIRST: Duration = Duration::from_millis(50);
/// The pause at which doubling stops once, so that a server that is nearly done is asked again at this pace.
const BRISK: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(2);

/// Limits at which a flow is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowLimits {
    /// Greatest number of rounds that ask. The default is 10.
    pub rounds: u32,
    /// Longest total time of rounds that ask nothing: pauses, and the requests after them. The default is five
    /// minutes.
    pub polling: Duration,
    /// Greatest number of questions in one round. The default is 32.
    #[serde(default = "questions")]
    pub questions: usize,
}

const fn questions() -> usize {
    32
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self { rounds: 10, polling: Duration::from_secs(300), questions: questions() }
    }
}

/// Returns the pause before a request that answers nothing, given the number of such requests in a row: 50 ms, 100
/// ms, 200 ms, 250 ms, then half a second, a second, and two seconds from there on.
pub(super) fn pause(polls: u32) -> Duration {
    let doubled = |first: Duration, times: u32| first.saturating_mul(2_u32.saturating_pow(times));
    match polls {
        0..=3 => doubled(FIRST, polls).min(BRISK),
        more => doubled(BRISK, more - 3).min(LONGEST),
    }
}

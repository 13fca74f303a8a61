//! What is allowed of a token, apart from what it says itself.

use std::time::Duration;

/// How long a round waits for its answers unless it says otherwise.
pub const DEFAULT_TTL: Duration = Duration::from_secs(600);
/// How far the clocks of two instances may stand apart.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// How large a token may be, and how old its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest token, in characters: checked before one is decoded and before one is sent.
    pub max_token: usize,
    /// How long after its first round a flow may go on; without it, as long as its rounds keep coming.
    pub max_flow_age: Option<Duration>,
}

impl Default for Limits {
    /// 64 KiB, and no limit on a flow's age.
    fn default() -> Self {
        Self { max_token: 64 * 1024, max_flow_age: None }
    }
}

impl Limits {
    /// Sets the longest token, in characters.
    #[must_use]
    pub const fn max_token(mut self, characters: usize) -> Self {
        self.max_token = characters;
        self
    }

    /// Sets how long after its first round a flow may go on.
    #[must_use]
    pub const fn max_flow_age(mut self, age: Duration) -> Self {
        self.max_flow_age = Some(age);
        self
    }

    /// Whether a token of this many characters is past half of what is allowed, and worth a warning.
    pub const fn is_heavy(&self, characters: usize) -> bool {
        characters > self.max_token / 2
    }
}

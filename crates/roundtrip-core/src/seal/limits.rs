//! Limits on tokens.

use std::time::Duration;

/// Default time that a round waits for its answers.
pub const DEFAULT_TTL: Duration = Duration::from_secs(600);
/// Greatest difference allowed between the clocks of two instances.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Limits on the length of a token and the age of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenLimits {
    /// The longest token, in characters: checked before one is decoded and before one is sent.
    pub max_token: usize,
    /// Greatest age of a flow since its first round; `None` means no limit.
    pub max_flow_age: Option<Duration>,
}

impl Default for TokenLimits {
    /// 64 KiB, and no limit on a flow's age.
    fn default() -> Self {
        Self { max_token: 64 * 1024, max_flow_age: None }
    }
}

impl TokenLimits {
    /// Sets the longest token, in characters.
    #[must_use]
    pub const fn max_token(mut self, characters: usize) -> Self {
        self.max_token = characters;
        self
    }

    /// Sets the greatest age of a flow since its first round.
    #[must_use]
    pub const fn max_flow_age(mut self, age: Duration) -> Self {
        self.max_flow_age = Some(age);
        self
    }

    /// Returns whether a token of this many characters is over half the limit, and worth a warning.
    pub const fn is_heavy(&self, characters: usize) -> bool {
        characters > self.max_token / 2
    }
}

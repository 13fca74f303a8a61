//! Limits on tokens.

use std::time::Duration;

/// Default time that a round waits for its answers.
pub const DEFAULT_TTL: Duration = Duration::from_secs(600);
/// Default of [`TokenLimits::clock_skew`] where several processes may share the keys.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Limits on the length of a token, on the age of its flow, and on the difference of clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenLimits {
    /// The longest token, in characters: checked before one is decoded and before one is sent.
    pub max_token: usize,
    /// Greatest age of a flow since its first round; `None` means no limit.
    pub max_flow_age: Option<Duration>,
    /// Greatest difference between the clocks of two instances: a token is opened this long after it has expired, in case the
    /// clock of the instance that sealed it is behind. `None` means [`CLOCK_SKEW`], and no time at all where only one process
    /// can have sealed it ([`Keyring::single_process`](super::Keyring::single_process)).
    pub clock_skew: Option<Duration>,
}

impl Default for TokenLimits {
    /// 64 KiB, no limit on a flow's age, and the usual difference of clocks.
    fn default() -> Self {
        Self { max_token: 64 * 1024, max_flow_age: None, clock_skew: None }
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

    /// Sets the greatest difference between the clocks of two instances.
    #[must_use]
    pub const fn clock_skew(mut self, difference: Duration) -> Self {
        self.clock_skew = Some(difference);
        self
    }

    /// Returns whether a token of this many characters is over half the limit, and worth a warning.
    pub const fn is_heavy(&self, characters: usize) -> bool {
        characters > self.max_token / 2
    }
}

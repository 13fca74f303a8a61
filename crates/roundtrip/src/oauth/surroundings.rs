//! Clock and randomness of a sign-in.

use std::time::SystemTime;

use roundtrip_core::auth::{AuthError, Surroundings};
use roundtrip_core::seal::Timestamp;

/// Clock and randomness for one step of a sign-in.
#[derive(Default)]
struct Around {
    failed: bool,
}

impl Surroundings for Around {
    fn now(&self) -> Timestamp {
        now()
    }

    fn random(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.failed |= getrandom::fill(&mut bytes).is_err();
        bytes
    }
}

/// Takes a step of a sign-in. One that had no randomness is dropped.
pub(super) fn around<T>(
    step: impl FnOnce(&mut dyn Surroundings) -> Result<T, AuthError>,
) -> Result<T, AuthError> {
    let mut around = Around::default();
    let taken = step(&mut around);
    if around.failed {
        return Err(AuthError::Settings("the operating system has no random numbers now"));
    }
    taken
}

/// Returns the present time.
pub(super) fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

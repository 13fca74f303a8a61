//! Step-up: a token with more scopes, asked for within bounds.

use super::challenge::Demand;
use super::error::AuthError;
use super::scope::ScopeSet;
use crate::seal::Timestamp;

/// Greatest number of step-ups in one call.
const PER_CALL: u32 = 2;
/// Greatest number of sign-ins at one resource without a request that it accepts, and of fresh tokens that it may reject before
/// renewals pause.
const IN_A_ROW: u32 = 3;
/// Time for which a refusal is remembered, and renewals pause, in seconds.
const REMEMBERED: u64 = 300;
/// Greatest number of refusals that are remembered.
const MOST_REFUSALS: usize = 16;

/// Returns the scopes to request after a 403: those requested before, whether granted or not, and those of the challenge.
///
/// # Errors
/// Fails if that adds nothing to what was requested last: a person would be asked in vain.
pub fn step_up_scopes(requested: &ScopeSet, demand: &Demand) -> Result<ScopeSet, AuthError> {
    let union = demand.scope.as_ref().map_or_else(|| requested.clone(), |scope| requested.union(scope));
    if union == *requested { Err(AuthError::ScopesRefused(union)) } else { Ok(union) }
}

/// Count of the step-ups of one call.
#[derive(Debug, Clone, Default)]
pub struct CallAttempts {
    step_ups: u32,
    fresh: bool,
    excused: bool,
}

impl CallAttempts {
    /// Counts a step-up to these scopes.
    ///
    /// # Errors
    /// Fails if the call has had as many as it may.
    pub fn step_up(&mut self, scopes: &ScopeSet) -> Result<(), AuthError> {
        if self.step_ups == PER_CALL {
            return Err(AuthError::ScopesRefused(scopes.clone()));
        }
        self.step_ups += 1;
        // The token with more scopes is another one.
        self.fresh = true;
        Ok(())
    }

    /// Notes that a request of the call was accepted: the next one may find its token refused again.
    pub fn accepted(&mut self) {
        self.fresh = false;
    }

    /// Notes that the resource has accepted the token in another request, before it refused it in this one: the token may have
    /// ended in between. Once in a call, no more.
    pub fn accepted_elsewhere(&mut self) {
        if self.fresh && !std::mem::replace(&mut self.excused, true) {
            self.fresh = false;
        }
    }

    /// Counts a 401. Returns whether a token should be got: a second 401 for the same request, after a fresh token, is final.
    pub fn unauthorized(&mut self) -> bool {
        !std::mem::replace(&mut self.fresh, true)
    }
}

/// Count of the sign-ins at one resource, and its refusals of late.
#[derive(Debug, Clone, Default)]
pub struct ResourceAttempts {
    in_a_row: u32,
    last: Option<Timestamp>,
    /// Fresh tokens in a row that the resource rejected.
    rejected: u32,
    last_rejected: Option<Timestamp>,
    refused: Vec<(ScopeSet, Timestamp)>,
}

impl ResourceAttempts {
    /// Counts a sign-in for these scopes.
    ///
    /// # Errors
    /// Fails if there were too many without a request that the resource accepted, and if these scopes were refused of late.
    pub fn sign_in(&mut self, scopes: &ScopeSet, now: Timestamp) -> Result<(), AuthError> {
        self.refused.retain(|(_, at)| !is_past(*at, now));
        if self.last.is_some_and(|last| is_past(last, now)) {
            self.in_a_row = 0;
        }
        let refused = self.refused.iter().any(|(refused, _)| refused == scopes);
        if refused || self.in_a_row == IN_A_ROW {
            return Err(AuthError::ScopesRefused(scopes.clone()));
        }
        self.in_a_row += 1;
        self.last = Some(now);
        Ok(())
    }

    /// Takes a sign-in back that gave no token: the resource has refused none.
    pub fn gave_nothing(&mut self) {
        self.in_a_row = self.in_a_row.saturating_sub(1);
    }

    /// Notes that the resource accepted a request.
    pub fn accepted(&mut self) {
        (self.in_a_row, self.rejected) = (0, 0);
    }

    /// Notes that the resource rejected a token that it had never accepted.
    pub fn rejected(&mut self, now: Timestamp) {
        self.rejected = self.rejected.saturating_add(1);
        self.last_rejected = Some(now);
    }

    /// Returns whether a token may be renewed. Renewals pause after fresh tokens in a row that the resource rejected.
    pub fn may_renew(&mut self, now: Timestamp) -> bool {
        if self.last_rejected.is_some_and(|last| is_past(last, now)) {
            self.rejected = 0;
        }
        self.rejected < IN_A_ROW
    }

    /// Notes that scopes were refused, by the person or by the resource.
    pub fn refused(&mut self, scopes: ScopeSet, now: Timestamp) {
        if self.refused.len() == MOST_REFUSALS {
            self.refused.remove(0);
        }
        self.refused.push((scopes, now));
    }
}

/// Returns whether something is long enough ago to be forgotten.
fn is_past(at: Timestamp, now: Timestamp) -> bool {
    now.as_unix() >= at.as_unix().saturating_add(REMEMBERED)
}

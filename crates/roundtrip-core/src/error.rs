//! Errors by who must act.

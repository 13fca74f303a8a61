//! [`Shown`]: questions that a task shows while its handler runs.

use std::borrow::Cow;
use std::collections::HashSet;

use roundtrip_core::round::Pin;

/// Questions that a task shows while its handler runs.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Keys of those that are shown.
    pub(super) keys: HashSet<Cow<'static, str>>,
    /// Keys and pins that are not part of the stored journal yet.
    pub(super) opened: Vec<(Cow<'static, str>, Pin)>,
    /// Keys of answers that are part of the journal, and not stored yet.
    pub(super) given: HashSet<String>,
    /// Keys of questions that no future waits for any more.
    pub(super) withdrawn: Vec<Cow<'static, str>>,
}

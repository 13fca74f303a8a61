//! Notifications: those that a call sends before its result, and those of `subscriptions/listen`.

pub(crate) mod outbox;
mod pace;
pub(crate) mod status;
pub(crate) mod subscription;

//! Options of one call.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "oauth")]
use roundtrip_core::auth::CallAttempts;
use roundtrip_core::error::{ApiMisuse, Error, PeerMisbehaved};
use roundtrip_core::exchange::{Params, TaskDialect};
use roundtrip_core::wire::{
    ContentBlock, LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParams,
    NotificationMethod, PartNotification, PartNotificationParams, ProgressNotification,
    ProgressNotificationParams, Raw, RequestId, check_meta_key, clip, decode_params, meta,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::part_numbers::PartNumbers;
use super::request::raw;
use super::resend::{IDEMPOTENCY_KEY, Resend};
#[cfg(feature = "opentelemetry")]
use crate::telemetry::ClientSpan;

type OnProgress = Box<dyn FnMut(ProgressNotificationParams) + Send>;
pub(crate) type OnPart = Box<dyn FnMut(ContentBlock) + Send>;
type OnLog = Box<dyn FnMut(LoggingMessageNotificationParams) + Send>;

/// The caller's wish for a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskWish {
    /// True if the caller wants the call to become one, where that is the client's to say.
    pub(crate) is_wanted: bool,
    /// Time that the task is to be kept.
    pub(crate) ttl: Option<Duration>,
}

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) on_log: Option<OnLog>,
    log_level: Option<LoggingLevel>,
    pub(crate) on_part: Option<OnPart>,
    pub(crate) part_numbers: PartNumbers,
    pub(crate) extra: Vec<(String, Raw)>,
    /// True if the cache is left aside.
    pub(crate) fresh: bool,
    /// Policy for a connection that breaks.
    pub(crate) resend: Option<Resend>,
    /// Name of this very request, so that a server can tell when it comes twice.
    pub(crate) request_key: Option<Raw>,
    /// True if questions go to the caller, who can put them to the user.
    pub(crate) by_hand: bool,
    /// Wish for a task.
    pub(crate) task: TaskWish,
    /// Dialect of a request about tasks, where it is not the client's.
    pub(crate) dialect: Option<TaskDialect>,
    /// Task that the request names in `_meta`.
    pub(crate) related_task: Option<Raw>,
    /// First mistake in the settings of the call.
    pub(crate) problem: Option<Error>,
    /// Time that requests of the call have taken, without that of sign-ins.
    pub(crate) waited: Duration,
    /// Tokens that were got for the call.
    #[cfg(feature = "oauth")]
    pub(crate) tokens: CallAttempts,
    /// Highest progress so far, of all rounds.
    highest_progress: Option<f64>,
    /// Span of the request under way.
    #[cfg(feature = "opentelemetry")]
    pub(crate) span: Option<Box<ClientSpan>>,
}

impl Options {
    pub(crate) fn level(&mut self, level: LoggingLevel) {
        self.log_level = Some(level);
    }

    /// The level asked for; a handler for messages alone asks for `info` and above.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        self.log_level.or_else(|| self.on_log.is_some().then_some(LoggingLevel::Info))
    }

    pub(crate) fn meta(&mut self, key: String, value: &impl Serialize) {
        let reserved = [
            meta::key::PROGRESS_TOKEN,
            meta::key::PROTOCOL_VERSION,
            meta::key::CLIENT_INFO,
            meta::key::CLIENT_CAPABILITIES,
            meta::key::LOG_LEVEL,
        ];
        if reserved.contains(&key.as_str()) {
            self.fail(
                ApiMisuse::ReservedMeta(format!("`{key}` in `_meta` is filled in by the client")).into(),
            );
            return;
        }
        if key == IDEMPOTENCY_KEY {
            let why = format!("`{key}` in `_meta` is what `.idempotency_key(..)` is for");
            self.fail(ApiMisuse::ReservedMeta(why).into());
            return;
        }
        if let Err(why) = check_meta_key(&key) {
            self.fail(ApiMisuse::ReservedMeta(format!("`_meta`: {why}")).into());
            return;
        }
        match raw(value, "a value in `_meta`") {
            Ok(value) => {
                self.extra.retain(|(name, _)| *name != key);
                self.extra.push((key, value));
            }
            Err(error) => self.fail(error),
        }
    }

    /// Returns the policy for a connection that breaks. A caller that names its requests wants them sent again.
    pub(crate) fn resend(&self) -> Resend {
        let unsaid = if self.request_key.is_some() { Resend::Always } else { Resend::default() };
        self.resend.unwrap_or(unsaid)
    }

    /// Adds the members that `_meta` had before, except those set now.
    pub(crate) fn keep_meta(&mut self, meta: &Params) {
        for (name, value) in meta.iter() {
            if !self.extra.iter().any(|(said, _)| said == name) {
                self.extra.push((name.to_owned(), value.clone()));
            }
        }
    }

    /// Returns the members to be added to `_meta`.
    pub(crate) fn extra(&self) -> impl Iterator<Item = (&str, &Raw)> {
        let key = self.request_key.iter().map(|key| (IDEMPOTENCY_KEY, key));
        let related = self.related_task.iter().map(|task| (meta::key::RELATED_TASK, task));
        let extra = self.extra.iter().map(|(name, value)| (name.as_str(), value));
        extra.chain(key).chain(related).chain(self.trace_context())
    }

    #[cfg(not(feature = "opentelemetry"))]
    fn trace_context(&self) -> impl Iterator<Item = (&str, &Raw)> {
        std::iter::empty()
    }

    /// Returns the trace context of the span, unless the caller has given one.
    #[cfg(feature = "opentelemetry")]
    fn trace_context(&self) -> impl Iterator<Item = (&str, &Raw)> {
        let given = self.extra.iter().any(|(name, _)| name == meta::key::TRACEPARENT);
        let span = self.span.iter().filter(move |_| !given);
        span.flat_map(|span| span.trace_context().iter().map(|(name, value)| (*name, value)))
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.problem.get_or_insert(error);
    }

    /// Counts progress anew, for a request that does not carry on with the work of the one before.
    pub(crate) fn reset_progress(&mut self) {
        self.highest_progress = None;
    }

    /// Hands a notification that came before the answer to the hook for it. Notifications that this request did not ask
    /// for are left out, and so is progress that does not exceed the highest of the call (N2): a server whose handler
    /// runs again in the next round reports the same progress again.
    pub(crate) fn observe(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        match method {
            ProgressNotification::NAME => {
                let params: ProgressNotificationParams = decode(method, params)?;
                let grows = self.highest_progress.is_none_or(|highest| params.progress > highest);
                let Some(on_progress) = &mut self.on_progress else { return Ok(()) };
                if params.progress_token == *id && grows {
                    self.highest_progress = Some(params.progress);
                    on_progress(params);
                }
            }
            LoggingMessageNotification::NAME => {
                let params: LoggingMessageNotificationParams = decode(method, params)?;
                let wanted = self.log_level().is_some_and(|least| params.level >= least);
                match &mut self.on_log {
                    Some(on_log) if wanted => on_log(params),
                    _ => {}
                }
            }
            PartNotification::NAME => {
                let Some(on_part) = &mut self.on_part else { return Ok(()) };
                let part: PartNotificationParams = decode(method, params)?;
                if part.request_id != *id {
                    let why = format!("request {id} was sent a part of request {}", part.request_id);
                    return Err(PeerMisbehaved::WrongId(why).into());
                }
                if self.part_numbers.is_new(part.part)? {
                    on_part(part.content);
                }
            }
            other => tracing::debug!(method = &*clip(other), "a notification that no hook waits for"),
        }
        Ok(())
    }
}

pub(crate) fn decode<P: serde::de::DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> Result<P, Error> {
    decode_params(params)
        .map_err(|error| PeerMisbehaved::MalformedMessage(format!("`{method}`: {}", error.message)).into())
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Settings of every call.
macro_rules! options {
    () => {
        /// Limits one request in time, in place of the client's setting. When it is over the request is
        /// cancelled; progress does not prolong it. Everything that is done for the request counts: finding out which
        /// revision the server speaks, the handshake, looking up a tool's headers, sending again.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.timeout = Some(timeout);
            self
        }

        /// Asks for progress, and calls the hook with it as it comes. It never runs backwards: progress that does not
        /// exceed what the call has reported, in this round or an earlier one, is left out.
        pub fn on_progress<F>(mut self, observer: F) -> Self
        where
            F: FnMut(roundtrip_core::wire::ProgressNotificationParams) + Send + 'static,
        {
            self.options.on_progress = Some(Box::new(observer));
            self
        }

        /// Calls the hook with the server's log messages as they come: at level `info` and above, unless
        /// [`log_level`](Self::log_level) says otherwise.
        ///
        /// On a transport that all calls share (stdio), and outside of the calls of an older server, log messages do not
        /// say which call they belong to: every call under way that asked for any is given all of them.
        ///
        /// Log messages are deprecated since revision 2026-07-28 (SEP-2577): prefer `tracing`.
        pub fn on_log<F>(mut self, observer: F) -> Self
        where
            F: FnMut(roundtrip_core::wire::LoggingMessageNotificationParams) + Send + 'static,
        {
            self.options.on_log = Some(Box::new(observer));
            self
        }

        /// Asks for log messages of this level and above.
        ///
        /// Log messages are deprecated since revision 2026-07-28 (SEP-2577): prefer `tracing`.
        pub fn log_level(mut self, level: roundtrip_core::wire::LoggingLevel) -> Self {
            self.options.level(level);
            self
        }

        /// Adds a value to the request's `_meta`.
        pub fn meta(mut self, key: impl Into<String>, value: impl serde::Serialize) -> Self {
            self.options.meta(key.into(), &value);
            self
        }
    };
}

/// Settings of calls and turns that may be asked something.
macro_rules! rounds_options {
    () => {
        /// Limits the whole call in time: every request, every pause, and the time people think. When it is over, the
        /// request under way is cancelled; a task goes on at its server. There is no such bound unless it is set; [`timeout`](Self::timeout) bounds
        /// each request alone.
        pub fn deadline(mut self, deadline: std::time::Duration) -> Self {
            self.rounds.deadline = Some(deadline);
            self
        }

        /// Calls a hook with every `input_required` result, before a handler is asked anything: for logs, for audit, and
        /// for policy. An error refuses the round, and the call ends with it.
        pub fn on_round<F, E>(mut self, mut hook: F) -> Self
        where
            F: FnMut(&roundtrip_core::exchange::Pending<M>) -> Result<(), E> + Send + 'static,
            E: Into<Box<dyn std::error::Error + Send + Sync>>,
        {
            self.rounds.on_round =
                Some(Box::new(move |round| hook(round).map_err(roundtrip_core::error::Error::handler)));
            self
        }

        /// Sets when a request is sent again after the connection broke. The default is
        /// [`Resend::Unsent`](crate::client::Resend::Unsent).
        pub fn resend(mut self, policy: crate::client::Resend) -> Self {
            self.options.resend = Some(policy);
            self
        }
    };
}

/// Setting of calls that may become tasks, and of tasks.
macro_rules! status_option {
    () => {
        /// Calls a hook with the task that a call has become, and again whenever its status or its `statusMessage` is
        /// another: for a display, and to note the task's identifier. It is called without questions, result and error.
        pub fn on_status<F>(mut self, hook: F) -> Self
        where
            F: FnMut(&roundtrip_core::wire::Task) + Send + 'static,
        {
            self.rounds.on_status = Some(Box::new(hook));
            self
        }
    };
}

pub(crate) use {options, rounds_options, status_option};

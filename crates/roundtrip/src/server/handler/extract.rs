//! Extractors: the parameters that a handler can take, in any order.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use roundtrip_core::wire::{
    ErrorObject, LoggingLevel, LoggingMessageNotificationParams, NotificationMeta,
    ProgressNotificationParams, ProgressToken, Raw, clip, clip_error, json,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{Arguments, Call, Rejection, known};
use super::needs::Needs;
use super::strings;
use crate::schema::refuse_misplaced;
use crate::server::notify::outbox::Outbox;
use crate::server::notify::status::StatusSlot;

/// Extractor: a type that a handler can take as a parameter.
///
/// Implement it for your own types to move checks and look-ups out of handlers. It is synchronous: take what
/// you need here, and do the waiting in the handler, or in a resolver ([`Resolve`](crate::Resolve)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler's parameter",
    label = "not something a call can provide",
    note = "handlers take `Args<T>`, `Ask`, `Asked<T>`, `Asking<T>`, `Resolved<T>`, `Round`, `State<S>`, `Extension<T>`, \
            `Caller`, `Progress`, `Status`, `Parts`, `Log`, `Uri`, `Catalog`, and your own types that implement `FromCall`; completers take `Partial` too",
    note = "did you mean `Args<{Self}>` or `State<{Self}>`?"
)]
pub trait FromCall: Sized + Send + 'static {
    /// Takes the value from a call.
    ///
    /// # Errors
    /// A [`Rejection`] ends the call before the handler runs.
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection>;

    /// Declares what this parameter needs, once, when the handler is registered.
    fn needs(needs: &mut Needs) {
        let _ = needs;
    }
}

/// Extractor for the call's arguments, as a type of your own.
///
/// For tools the type gives the input schema, and arguments are checked against it before the handler runs. For
/// prompts and resource templates it gives the arguments and takes the variables; numbers and booleans are
/// parsed from strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        match &call.arguments {
            Arguments::Text(raw) => parse_text(raw.map_or("{}", RawValue::get)),
            Arguments::Value(value) => parse_value(value),
            Arguments::Strings(pairs) => parse_strings(pairs.iter().map(|(name, value)| (&**name, &**value))),
            Arguments::Typed(typed) => parse_strings(known(typed)),
        }
        .map(Self)
    }

    fn needs(needs: &mut Needs) {
        needs.arguments(schemars::schema_for!(T));
    }
}

fn parse_strings<'a, T: DeserializeOwned>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<T, Rejection> {
    let pairs: Vec<_> = pairs.collect();
    strings::parse(&pairs).map_err(Rejection::Arguments)
}

/// Parses arguments; a second time only to find the path of an error, or if serde would buffer a list.
fn parse_text<T: DeserializeOwned + JsonSchema + 'static>(text: &str) -> Result<T, Rejection> {
    json::from_str_unbuffered(text).or_else(|first| parse_again(text, &first))
}

#[cold]
fn parse_again<T: DeserializeOwned + JsonSchema + 'static>(
    text: &str,
    first: &serde_json::Error,
) -> Result<T, Rejection> {
    let lists = json::Lists::default();
    let mut again = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(json::ByName::noting(&mut again, &lists));
    let parsed = parsed.map_err(|error| describe(&error))?;
    if !lists.any() {
        return Err(Rejection::Arguments(clip_error(first)));
    }
    let value = json::from_str(text).map_err(|error| Rejection::Arguments(clip_error(&error)))?;
    refuse_lists::<T>(&value)?;
    Ok(parsed)
}

fn parse_value<T: DeserializeOwned + JsonSchema + 'static>(value: &Value) -> Result<T, Rejection> {
    let lists = json::Lists::default();
    let parsed = serde_path_to_error::deserialize(json::ByName::noting(value, &lists));
    let parsed = parsed.map_err(|error| describe(&error))?;
    if lists.any() {
        refuse_lists::<T>(value)?;
    }
    Ok(parsed)
}

/// Refuses lists that serde has read a struct from.
#[cold]
fn refuse_lists<T: JsonSchema + 'static>(value: &Value) -> Result<(), Rejection> {
    refuse_misplaced::<T>(value).map_err(|misfit| Rejection::Arguments(misfit.to_string()))
}

fn describe(error: &serde_path_to_error::Error<serde_json::Error>) -> Rejection {
    let path = error.path().to_string();
    // serde_json ends its messages with a position, which means nothing to a caller that wrote a value.
    let message = error.inner().to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    // It quotes what was sent, which may be as long as a message.
    let (path, message) = (clip(&path), clip_error(&message));
    Rejection::Arguments(if path == "." {
        message
    } else {
        format!("/{}: {message}", path.replace('.', "/"))
    })
}

/// Extractor for a value given to [`Server::state`](crate::Server::state), cloned for the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State<S>(pub S);

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        // Registration has checked that it is there.
        call.state.get::<S>().cloned().map(Self).ok_or_else(|| {
            ErrorObject::internal(format!("no state of type {}", std::any::type_name::<S>())).into()
        })
    }

    fn needs(needs: &mut Needs) {
        needs.state::<S>();
    }
}

impl<S> Deref for State<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.0
    }
}

/// Extractor for an extension that the HTTP stack attached to the request (`http::Extensions`), cloned for the call.
/// A tool whose calls may become tasks takes those that [`Tasks::keep_extension`](crate::Tasks::keep_extension) stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for Extension<T> {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        call.peer.extensions.get::<T>().cloned().map(Self).ok_or_else(|| {
            let wanted = std::any::type_name::<T>();
            tracing::error!(
                wanted,
                "a handler takes an extension that no layer has set: add the layer in front of the server"
            );
            ErrorObject::internal("the server is not set up for this call").into()
        })
    }

    fn needs(needs: &mut Needs) {
        needs.extension::<T>();
    }
}

/// Extractor for the URI that a resource or template is read at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Uri(pub String);

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Deref for Uri {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Uri {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromCall for Uri {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        Ok(Self(call.target.to_owned()))
    }

    fn needs(needs: &mut Needs) {
        needs.uri = true;
    }
}

/// Extractor that describes the state of the call's task, for people and models: its `statusMessage`. In a call that is no
/// task this does nothing.
#[derive(Debug, Clone)]
pub struct Status(Option<Arc<StatusSlot>>);

impl FromCall for Status {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        Ok(Self(call.status.clone()))
    }
}

impl Status {
    /// Sets the description. Of several in short order the last is stored.
    pub fn set(&self, message: impl Into<String>) {
        if let Some(status) = &self.0 {
            status.set(message.into());
        }
    }
}

/// Extractor that reports progress to a client that asked for it; for any other, reporting costs nothing. In a task, the last
/// report is its `statusMessage`; sessions of 2025-11-25 are sent progress too, by the process that works on the task.
#[derive(Debug, Clone)]
pub struct Progress {
    outbox: Option<(Arc<Outbox>, ProgressToken)>,
    status: Status,
}

impl FromCall for Progress {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let token = call.meta.progress_token.clone();
        let outbox = token.map(|token| (call.outbox(), token));
        Ok(Self { outbox, status: Status(call.status.clone()) })
    }
}

impl Progress {
    /// Reports progress: `0.5`, `(50, 100)` or `(50, 100, "half way")`.
    ///
    /// Progress only ever increases (N2): a report that does not go beyond the last one of this flow is left out.
    pub fn report(&self, step: impl Into<ProgressStep>) {
        if self.outbox.is_none() && self.status.0.is_none() {
            return;
        }
        let ProgressStep { progress, total, message } = step.into();
        let described = self.status.0.as_ref().map(|_| match (&message, total) {
            (Some(message), _) => message.clone(),
            (None, Some(total)) => format!("{progress} of {total}"),
            (None, None) => progress.to_string(),
        });
        if let Some((outbox, token)) = &self.outbox {
            let (progress_token, meta) = (token.clone(), NotificationMeta::default());
            let report = ProgressNotificationParams { progress_token, progress, total, message, meta };
            outbox.progress(&report);
            if let Some(status) = &self.status.0 {
                status.report(report);
            }
        }
        if let Some(described) = described {
            self.status.set(described);
        }
    }
}

/// Progress of some work, with its total and a message if they are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressStep {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

macro_rules! plain_step {
    ($($number:ty,)*) => {
        $(impl From<$number> for ProgressStep {
            fn from(progress: $number) -> Self {
                Self { progress: progress.into(), total: None, message: None }
            }
        })*
    };
}

plain_step! { f64, f32, u32, i32, }

impl<P: Into<f64>, T: Into<f64>> From<(P, T)> for ProgressStep {
    fn from((progress, total): (P, T)) -> Self {
        Self { progress: progress.into(), total: Some(total.into()), message: None }
    }
}

impl<P: Into<f64>, T: Into<f64>, M: Into<String>> From<(P, T, M)> for ProgressStep {
    fn from((progress, total, message): (P, T, M)) -> Self {
        Self { progress: progress.into(), total: Some(total.into()), message: Some(message.into()) }
    }
}

/// Extractor that sends log messages to a client that asked for them, at the level it asked for and above (N2). A handler that
/// runs again does not repeat them: those that earlier rounds have sent are left out, up to the first that differs.
///
/// Log messages are deprecated since revision 2026-07-28 (SEP-2577): prefer `tracing`.
#[derive(Debug, Clone)]
pub struct Log(Option<(Arc<Outbox>, LoggingLevel)>);

impl FromCall for Log {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let level = call.meta.log_level;
        Ok(Self(level.map(|level| (call.outbox(), level))))
    }

    fn needs(needs: &mut Needs) {
        needs.logging = true;
    }
}

impl Log {
    /// Sends a message: any value that serialises.
    pub fn send(&self, level: LoggingLevel, data: impl Serialize) {
        let Some((outbox, least)) = &self.0 else { return };
        if level < *least {
            return;
        }
        match Raw::of(&data) {
            Ok(data) => outbox.log(&LoggingMessageNotificationParams {
                level,
                logger: None,
                data,
                meta: NotificationMeta::default(),
            }),
            Err(error) => tracing::warn!(%error, "a log message does not serialise"),
        }
    }
}

macro_rules! levels {
    ($($method:ident = $level:ident,)*) => {
        impl Log {
            $(#[doc = concat!("Sends a message at level `", stringify!($method), "`.")]
            pub fn $method(&self, data: impl Serialize) {
                self.send(LoggingLevel::$level, data);
            })*
        }
    };
}

levels! {
    debug = Debug,
    info = Info,
    notice = Notice,
    warning = Warning,
    error = Error,
    critical = Critical,
    alert = Alert,
    emergency = Emergency,
}

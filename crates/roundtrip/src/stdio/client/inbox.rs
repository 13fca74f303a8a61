//! Routes the child's messages to the requests they belong to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use roundtrip_core::wire::{
    CancelledNotification, LoggingMessageNotification, Message, Notification, NotificationMeta,
    NotificationMethod, PARSE_ERROR, PartNotification, ProgressNotification, RequestId, clip, json,
};
use serde::Deserialize;

use crate::client::{Error, Sent, Unreachable, nameless_error};
use crate::lock::lock;
use crate::stdio::MAX_LINE;

/// Most notifications that may wait in a mailbox. Calls drop those beyond, which are hints; a stream of changes that
/// falls so far behind ends, because a change must not be lost unnoticed.
const CAPACITY: usize = 256;
/// Most bytes of notifications that may wait in a mailbox beside the first, with the same consequences.
const CAPACITY_BYTES: usize = 1024 * 1024;

/// Requests under way at one child.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    open: HashMap<RequestId, Arc<Mailbox>>,
    /// Mailbox for messages that belong to no request, in a session of the handshake eras. While there is one, the child may
    /// send requests of its own.
    general: Option<Arc<Mailbox>>,
    /// True once the child is gone: there will be no more answers.
    ended: bool,
}

/// Kind of message that a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An answer.
    Call,
    /// An answer, and parts of the result before it.
    Parts,
    /// Changes, until one side ends the stream.
    Stream,
}

impl Inbox {
    fn places(&self) -> MutexGuard<'_, Places> {
        lock(&self.0)
    }

    /// Opens a mailbox for a request's answer; `None` if the child is gone.
    pub(super) fn open(&self, id: &RequestId, place: Place) -> Option<Arc<Mailbox>> {
        let mut places = self.places();
        if places.ended {
            return None;
        }
        let mailbox = Arc::new(Mailbox { place, mail: Mutex::default() });
        places.open.insert(id.clone(), Arc::clone(&mailbox));
        Some(mailbox)
    }

    /// Opens the mailbox for messages that belong to no request; `None` if the child is gone.
    #[cfg(feature = "legacy")]
    pub(super) fn listen(&self) -> Option<Arc<Mailbox>> {
        let mut places = self.places();
        if places.ended {
            return None;
        }
        let mailbox = Arc::new(Mailbox { place: Place::Call, mail: Mutex::default() });
        places.general = Some(Arc::clone(&mailbox));
        Some(mailbox)
    }

    /// Returns whether the child is there, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.places().ended
    }

    /// Closes a mailbox; returns whether it was still waiting for its answer.
    pub(super) fn close(&self, id: &RequestId) -> bool {
        self.places().open.remove(id).is_some()
    }

    /// Fails all requests under way.
    pub(super) fn fail(&self, error: impl Fn() -> Error) {
        for mailbox in self.places().open.values() {
            mailbox.end(error());
        }
    }

    /// Fails all requests under way and accepts no more: the child is gone.
    pub(super) fn end(&self, message: &str) {
        // Under one lock: a mailbox opened in between would never learn of it.
        let mut places = self.places();
        places.ended = true;
        for (_, mailbox) in places.open.drain() {
            mailbox.end(Error::closed_by_server(message, Sent::Maybe));
        }
        if let Some(general) = places.general.take() {
            general.end(Error::closed_by_server(message, Sent::Maybe));
        }
    }

    /// Routes one line of the child's output. Returns whether it is a message.
    pub(super) fn route(&self, line: &[u8]) -> bool {
        match Message::decode(line) {
            Ok(Message::Response(response)) => match response.id {
                Some(id) => self.answer(&id, line),
                None => self.to_all(line),
            },
            Ok(Message::Notification(notification)) => self.notify(&notification, line),
            Ok(Message::Request(_)) => self.asked(line),
            Err(malformed) => match malformed.id {
                Some(id) => self.answer(&id, line),
                None if nameless_error(line).is_some() => self.to_all(line),
                None => {
                    let is_json = malformed.error.code != PARSE_ERROR;
                    tracing::warn!(is_json, "the server wrote a line that is not a message; ignored");
                    return false;
                }
            },
        }
        true
    }

    fn answer(&self, id: &RequestId, line: &[u8]) {
        match self.places().open.remove(id) {
            Some(mailbox) => mailbox.answer(line),
            None => tracing::debug!(%id, "ignored an answer to an unknown request"),
        }
    }

    /// Routes a request of the child's own, which does not name the call it belongs to.
    fn asked(&self, line: &[u8]) {
        let general = self.places().general.clone();
        match general {
            Some(general) => general.notify(&Bytes::copy_from_slice(line)),
            // It belongs to no request in particular, and none may hang because of it.
            None => self.to_all(line),
        }
    }

    fn to_all(&self, line: &[u8]) {
        let message = Bytes::copy_from_slice(line);
        for mailbox in self.places().open.values() {
            mailbox.notify(&message);
        }
    }

    /// Routes a notification: changes by their subscription id, progress by its token. A log message only says that
    /// some request wanted it.
    fn notify(&self, notification: &Notification<'_>, line: &[u8]) {
        #[derive(Debug, Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Peek {
            #[serde(default, rename = "_meta")]
            meta: Option<NotificationMeta>,
            #[serde(default)]
            progress_token: Option<RequestId>,
            #[serde(default)]
            request_id: Option<RequestId>,
        }
        let peek: Peek =
            notification.params.and_then(|raw| json::from_str(raw.get()).ok()).unwrap_or_default();
        let tag = peek.meta.and_then(|meta| meta.subscription_id);
        let id = match &*notification.method {
            ProgressNotification::NAME => peek.progress_token,
            CancelledNotification::NAME | PartNotification::NAME => peek.request_id,
            _ => tag,
        };
        let places = self.places();
        // One copy, for any number of mailboxes.
        let message = Bytes::copy_from_slice(line);
        match id {
            Some(id) => {
                if let Some(mailbox) = places.open.get(&id) {
                    match &*notification.method {
                        PartNotification::NAME => mailbox.part(&message),
                        _ => mailbox.notify(&message),
                    }
                }
            }
            None if notification.method == LoggingMessageNotification::NAME => {
                let calls = places.open.values().filter(|mailbox| mailbox.place != Place::Stream);
                calls.for_each(|mailbox| mailbox.notify(&message));
            }
            None => match &places.general {
                Some(general) => general.notify(&message),
                None => {
                    tracing::debug!(
                        method = &*clip(&notification.method),
                        "ignored a notification without a request"
                    );
                }
            },
        }
    }
}

/// Messages that have arrived for one request.
#[derive(Debug)]
pub(super) struct Mailbox {
    place: Place,
    mail: Mutex<Mail>,
}

#[derive(Debug, Default)]
struct Mail {
    messages: VecDeque<Bytes>,
    /// Bytes of all of them.
    bytes: usize,
    error: Option<Error>,
    ended: bool,
    /// True once parts of the result were left out.
    behind: bool,
    waker: Option<Waker>,
}

impl Mail {
    fn has_room_for(&self, message: &Bytes) -> bool {
        self.messages.is_empty()
            || self.messages.len() < CAPACITY && self.bytes + message.len() <= CAPACITY_BYTES
    }

    fn push(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.messages.push_back(message);
    }
}

impl Mailbox {
    fn with(&self, change: impl FnOnce(&mut Mail)) {
        let mut mail = lock(&self.mail);
        change(&mut mail);
        if let Some(waker) = mail.waker.take() {
            waker.wake();
        }
    }

    fn notify(&self, message: &Bytes) {
        self.with(|mail| {
            if mail.has_room_for(message) {
                mail.push(message.clone());
            } else if self.place == Place::Stream && !mail.ended {
                mail.ended = true;
                mail.error = Some(Error::unreachable(Unreachable::FellBehind, Sent::Maybe));
            }
        });
    }

    /// Keeps a part of the result. All of them make up one message, which may have as many bytes as these; once there were
    /// too many, no more are kept, and the result is whole all the same.
    fn part(&self, message: &Bytes) {
        // A call that asked for none would only leave them out later.
        if self.place != Place::Parts {
            return;
        }
        self.with(|mail| {
            mail.behind |= mail.bytes + message.len() > MAX_LINE;
            if !mail.behind {
                mail.push(message.clone());
            }
        });
    }

    fn answer(&self, line: &[u8]) {
        self.with(|mail| {
            mail.push(Bytes::copy_from_slice(line));
            mail.ended = true;
        });
    }

    fn end(&self, error: Error) {
        self.with(|mail| {
            if !std::mem::replace(&mut mail.ended, true) {
                mail.error = Some(error);
            }
        });
    }

    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let mut mail = lock(&self.mail);
        if let Some(message) = mail.messages.pop_front() {
            mail.bytes -= message.len();
            return Poll::Ready(Some(Ok(message)));
        }
        if mail.ended {
            return Poll::Ready(mail.error.take().map(Err));
        }
        mail.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn progress(token: i64, length: usize) -> Vec<u8> {
        let text = "x".repeat(length);
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1,"message":"{text}"}}}}"#
        )
        .into_bytes()
    }

    /// Returns the bytes of all waiting messages, and the error at the end.
    fn drain(mailbox: &Mailbox) -> (usize, Option<Error>) {
        let mut bytes = 0;
        loop {
            match mailbox.poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(message))) => bytes += message.len(),
                Poll::Ready(Some(Err(error))) => return (bytes, Some(error)),
                Poll::Ready(None) | Poll::Pending => return (bytes, None),
            }
        }
    }

    /// Z2: long notifications that nobody reads do not fill the memory; the answer comes all the same.
    #[test]
    fn notifications_nobody_reads_are_bounded_in_bytes() {
        let inbox = Inbox::default();
        let mailbox = inbox.open(&1.into(), Place::Call).expect("a place");
        for _ in 0..100 {
            inbox.route(&progress(1, 100_000));
        }
        let (kept, error) = drain(&mailbox);
        assert!((500_000..=CAPACITY_BYTES).contains(&kept) && error.is_none(), "{kept} {error:?}");
        inbox.route(&progress(1, 2 * CAPACITY_BYTES));
        inbox.route(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(drain(&mailbox).0 > 2 * CAPACITY_BYTES, "a single long one is kept, and the answer");
    }

    /// Z2, G4: parts that nobody reads are bounded by the length of a message, and kept for calls alone that asked for them; the
    /// answer comes all the same.
    #[test]
    fn parts_nobody_reads_are_bounded_in_bytes() {
        let text = "x".repeat(1_000_000);
        for (place, most) in [(Place::Parts, MAX_LINE), (Place::Call, 0)] {
            let inbox = Inbox::default();
            let mailbox = inbox.open(&1.into(), place).expect("a place");
            for part in 0..40 {
                let content = format!(r#"{{"type":"text","text":"{text}"}}"#);
                let params = format!(r#"{{"requestId":1,"part":{part},"content":{content}}}"#);
                let method = "notifications/dev.roundtrip/part";
                inbox.route(
                    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).as_bytes(),
                );
            }
            let answer = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
            inbox.route(answer);
            let (kept, error) = drain(&mailbox);
            let parts = kept - answer.len();
            assert!(parts <= most && parts >= most / 2 && error.is_none(), "{parts} of {most}, {error:?}");
        }
    }

    /// N1: a stream of changes that falls behind by bytes ends, as one does that falls behind by messages.
    #[test]
    fn long_changes_nobody_reads_end_the_stream() {
        let inbox = Inbox::default();
        let mailbox = inbox.open(&1.into(), Place::Stream).expect("a place");
        let uri = "x".repeat(100_000);
        let tag = r#""_meta":{"io.modelcontextprotocol/subscriptionId":1}"#;
        for _ in 0..100 {
            let params = format!(r#"{{{tag},"uri":"{uri}"}}"#);
            let method = "notifications/resources/updated";
            inbox.route(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).as_bytes());
        }
        let (kept, error) = drain(&mailbox);
        assert!(kept <= CAPACITY_BYTES && error.is_some_and(|error| error.to_string().contains("behind")));
    }
}

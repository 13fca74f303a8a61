//! What the child writes, sorted by the request it belongs to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use roundtrip_core::wire::{
    CancelledNotification, LoggingMessageNotification, Message, Notification, NotificationMeta,
    NotificationMethod, PARSE_ERROR, ProgressNotification, RequestId,
};
use serde::Deserialize;

use crate::client::{Error, Sent, nameless_error};

/// How many notifications may wait in a mailbox. Calls do without those beyond, which are hints; a stream of
/// changes that falls so far behind ends, because a change must not be lost unnoticed.
const CAPACITY: usize = 256;
/// How many bytes of them. One that is larger is taken where nothing else waits.
const CAPACITY_BYTES: usize = 4 * 1024 * 1024;

/// The requests under way at one child.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    open: HashMap<RequestId, Arc<Mailbox>>,
    /// Where what belongs to no request goes. While there is one, the child may send requests of its own.
    general: Option<Arc<Mailbox>>,
    /// The child is gone: there will be no more answers.
    ended: bool,
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An answer.
    Call,
    /// Changes, until one side has enough.
    Stream,
    /// An answer that nobody gives up on.
    Aside,
}

impl Inbox {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a request's answer; none where the child is gone.
    pub(super) fn open(&self, id: &RequestId, place: Place) -> Option<Arc<Mailbox>> {
        let mut places = self.places();
        if places.ended {
            return None;
        }
        let mailbox = Arc::new(Mailbox { place, mail: Mutex::default() });
        places.open.insert(id.clone(), Arc::clone(&mailbox));
        Some(mailbox)
    }

    /// A place for what belongs to no request; none where the child is gone.
    pub(super) fn listen(&self) -> Option<Arc<Mailbox>> {
        let mut places = self.places();
        if places.ended {
            return None;
        }
        let mailbox = Arc::new(Mailbox { place: Place::Call, mail: Mutex::default() });
        places.general = Some(Arc::clone(&mailbox));
        Some(mailbox)
    }

    /// Whether the child is there, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.places().ended
    }

    /// Gives a place up; whether it was still waiting for its answer.
    pub(super) fn close(&self, id: &RequestId) -> bool {
        self.places().open.remove(id).is_some()
    }

    /// Fails everything under way.
    pub(super) fn fail(&self, error: impl Fn() -> Error) {
        for mailbox in self.places().open.values() {
            mailbox.end(error());
        }
    }

    /// The child is gone: fails everything under way, and takes nothing more.
    pub(super) fn end(&self, message: &str) {
        // In one go: a place that is opened in between would never be told.
        let mut places = self.places();
        places.ended = true;
        for (_, mailbox) in places.open.drain() {
            mailbox.end(Error::unreachable(message, Sent::Maybe));
        }
        if let Some(general) = places.general.take() {
            general.end(Error::unreachable(message, Sent::Maybe));
        }
    }

    /// Takes one line of the child's output.
    pub(super) fn route(&self, line: &[u8]) {
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
                    tracing::warn!(is_json, "the server wrote a line that is not a message; passed over");
                }
            },
        }
    }

    fn answer(&self, id: &RequestId, line: &[u8]) {
        match self.places().open.remove(id) {
            Some(mailbox) => mailbox.answer(line),
            None => tracing::debug!(%id, "an answer nobody waits for"),
        }
    }

    /// A request of the child's own does not say what it belongs to.
    fn asked(&self, line: &[u8]) {
        let general = self.places().general.clone();
        match general {
            Some(general) => general.notify(&Bytes::copy_from_slice(line)),
            // No request is to blame for this more than any other, and none may hang over it.
            None => self.to_all(line),
        }
    }

    fn to_all(&self, line: &[u8]) {
        // One copy, however many are told.
        let line = Bytes::copy_from_slice(line);
        for mailbox in self.places().open.values() {
            mailbox.notify(&line);
        }
    }

    /// Streams of changes are found by their tag, progress by its token; a log message says no more than that some
    /// request wanted it.
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
            notification.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let tag = peek.meta.and_then(|meta| meta.subscription_id);
        let id = match &*notification.method {
            ProgressNotification::NAME => peek.progress_token,
            CancelledNotification::NAME => peek.request_id,
            _ => tag,
        };
        let places = self.places();
        match id {
            Some(id) => {
                if let Some(mailbox) = places.open.get(&id) {
                    mailbox.notify(&Bytes::copy_from_slice(line));
                }
            }
            None if notification.method == LoggingMessageNotification::NAME => {
                let line = Bytes::copy_from_slice(line);
                let calls = places.open.values().filter(|mailbox| mailbox.place != Place::Stream);
                calls.for_each(|mailbox| mailbox.notify(&line));
            }
            None => match &places.general {
                Some(general) => general.notify(&Bytes::copy_from_slice(line)),
                None => {
                    tracing::debug!(method = &*notification.method, "a notification that belongs nowhere");
                }
            },
        }
    }
}

/// What has come for one request.
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
    waker: Option<Waker>,
}

impl Mail {
    fn has_room(&self, bytes: usize) -> bool {
        let fits = self.messages.is_empty() || self.bytes + bytes <= CAPACITY_BYTES;
        fits && self.messages.len() < CAPACITY
    }

    fn push(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.messages.push_back(message);
    }
}

impl Mailbox {
    fn with(&self, change: impl FnOnce(&mut Mail)) {
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut mail);
        if let Some(waker) = mail.waker.take() {
            waker.wake();
        }
    }

    fn notify(&self, line: &Bytes) {
        self.with(|mail| {
            if mail.has_room(line.len()) {
                mail.push(line.clone());
            } else if self.place == Place::Stream && !mail.ended {
                mail.ended = true;
                let why = "this stream of changes fell too far behind: listen again, and take changes faster";
                mail.error = Some(Error::unreachable(why, Sent::Maybe));
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
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
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
    use std::sync::Arc;

    use super::*;

    fn waiting(mailbox: &Mailbox) -> Vec<Bytes> {
        mailbox.mail.lock().unwrap().messages.iter().cloned().collect()
    }

    /// Z2: what waits in a mailbox is bounded in bytes, and the answer finds its place all the same.
    #[test]
    fn a_mailbox_is_bounded_in_bytes() {
        let inbox = Inbox::default();
        let id = RequestId::Number(1);
        let mailbox = inbox.open(&id, Place::Call).unwrap();
        let data = "x".repeat(1 << 20);
        let log = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{data}"}}}}"#
        );
        (0..100).for_each(|_| inbox.route(log.as_bytes()));
        inbox.route(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let mail = waiting(&mailbox);
        assert!(mail.iter().map(Bytes::len).sum::<usize>() < 5 << 20, "{} messages", mail.len());
        assert!(mail.last().unwrap().ends_with(br#""result":{}}"#));
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(_)) = mailbox.poll_next(&mut cx) {}
        assert_eq!(mailbox.mail.lock().unwrap().bytes, 0);
    }

    /// Z2: a line for everybody is copied once.
    #[test]
    fn a_line_for_all_requests_is_copied_once() {
        let inbox = Inbox::default();
        let mailboxes: Vec<Arc<Mailbox>> =
            (0..50).map(|id| inbox.open(&RequestId::Number(id), Place::Call).unwrap()).collect();
        for line in [
            &br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what"}}"#[..],
            br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
        ] {
            inbox.route(line);
            let last: Vec<_> =
                mailboxes.iter().map(|mailbox| waiting(mailbox).last().unwrap().as_ptr()).collect();
            assert!(last.iter().all(|copy| *copy == last[0]));
        }
    }
}

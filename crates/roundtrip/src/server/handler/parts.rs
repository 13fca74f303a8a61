//! [`Parts`]: a tool's result that is sent as it comes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use roundtrip_core::wire::{
    CallToolRequestParams, CallToolResult, ContentBlock, Era, ErrorObject, PartsFrom, ProtocolVersion, Raw,
    RequestId, RequestMeta, STREAM_EXTENSION, TextContent, join_part, json,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::needs::Needs;
use super::reply::{IntoReply, Reply};
use crate::server::notify::outbox::Outbox;
use crate::server::notify::status::StatusSlot;
use crate::server::round::FlowConfig;

/// Time for which parts are gathered before they are sent, by a handler that waits for nothing else.
const GATHER: Duration = Duration::from_millis(2);

/// Extractor for a tool's result that is sent in parts, as they come, to a client that asks for them. Return it: it is the whole
/// result, and all that any other client gets.
///
/// ```
/// use roundtrip::{Parts, Tool};
///
/// async fn count(mut out: Parts) -> Parts {
///     for number in ["one", "two", "three"] {
///         out.text(number).await;
///     }
///     out
/// }
///
/// let tool = Tool::new("count", count);
/// # let _ = tool;
/// ```
///
/// Text is joined with the text before it. A handler that runs again in the next round sends only those parts that earlier
/// rounds have not sent: what comes before a question has to be the same each time, as everything before a question.
///
/// The result may have [`Limits::streamed_bytes`](crate::server::Limits::streamed_bytes): further parts are left out, and the call
/// fails.
#[derive(Debug)]
pub struct Parts {
    content: Vec<ContentBlock>,
    /// Bytes that may still be added.
    room: usize,
    /// True once there was no room.
    full: bool,
    /// The outbox and the request, if its client wants parts.
    receiver: Option<(Arc<Outbox>, RequestId)>,
    /// Time at which the transport last had its turn.
    sent: Option<Instant>,
    /// Place for the parts of a call that is a task or may become one, if its client takes parts.
    kept: Option<Arc<StatusSlot>>,
}

impl FromCall for Parts {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let receiver = call.stream.cloned().map(|request| (call.outbox(), request));
        let room = call.input.streamed_bytes();
        let kept = call.status.clone().filter(|_| call.input.flows.takes_parts(call.meta));
        Ok(Self { content: Vec::new(), room, full: false, receiver, sent: None, kept })
    }

    fn needs(needs: &mut Needs) {
        needs.streams();
    }
}

impl Parts {
    /// Adds text, and waits while the client has not read most of what came before it.
    pub async fn text(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if text.is_empty() || !self.has_room_for(text.len()) {
            return;
        }
        let has_room = self.tell(&Text { kind: "text", text });
        match self.content.last_mut() {
            Some(ContentBlock::Text(last)) if last.is_plain() => last.text.push_str(text),
            _ => self.content.push(ContentBlock::Text(TextContent::new(text))),
        }
        self.turn(has_room).await;
    }

    /// Adds a content block of any kind, and waits while the client has not read most of what came before it.
    pub async fn push(&mut self, part: impl Into<ContentBlock>) {
        let part = part.into();
        if !self.has_room_for(size(&part)) {
            return;
        }
        let has_room = self.tell(&part);
        join_part(&mut self.content, part);
        self.turn(has_room).await;
    }

    /// Returns the result so far.
    pub fn content(&self) -> &[ContentBlock] {
        &self.content
    }

    fn has_room_for(&mut self, bytes: usize) -> bool {
        match self.room.checked_sub(bytes).filter(|_| !self.full) {
            Some(room) => self.room = room,
            None => self.full = true,
        }
        !self.full
    }

    /// Sends a part, and returns whether there is room for more.
    fn tell(&self, part: &impl Serialize) -> bool {
        if let Some(kept) = &self.kept {
            kept.add_part(|| Raw::of(part).ok());
        }
        self.receiver.as_ref().is_none_or(|(outbox, request)| outbox.part(request, part))
    }

    /// Lets the transport send, if it has not for a while, and waits while the client does not read.
    async fn turn(&mut self, has_room: bool) {
        let Some((outbox, _)) = &self.receiver else { return };
        let due = self.sent.is_none_or(|sent| sent.elapsed() >= GATHER);
        if has_room && !due {
            return;
        }
        // The transport needs up to three turns to take what waits, to make a frame of it, and to send it.
        let mut yields = if due { 3 } else { 0 };
        poll_fn(|cx| {
            ready!(outbox.poll_room(cx));
            if yields == 0 {
                return Poll::Ready(());
            }
            yields -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        // From here on: with many streams a turn takes long, and the next part is not due for that.
        self.sent = Some(Instant::now());
    }
}

/// A part of nothing but text, as it is sent.
#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

/// Returns the bytes of a block on the wire.
fn size(part: &ContentBlock) -> usize {
    match part {
        ContentBlock::Text(text) if text.is_plain() => text.text.len(),
        other => serde_json::to_vec(other).map_or(0, |bytes| bytes.len()),
    }
}

impl IntoReply<CallToolResult> for Parts {
    fn into_reply(self, (): ()) -> Result<Reply<CallToolResult>, ErrorObject> {
        if self.full {
            tracing::error!("a result in parts is larger than `Limits::streamed_bytes`");
            return Err(ErrorObject::internal("the result is larger than this server sends"));
        }
        Ok(Reply::complete(CallToolResult { content: self.content, ..Default::default() }))
    }
}

impl FlowConfig {
    /// Returns the id of a request whose result is wanted in parts.
    pub(crate) fn wanted_in_parts<'a>(
        &self,
        params: &CallToolRequestParams<'_>,
        id: &'a RequestId,
    ) -> Result<Option<&'a RequestId>, ErrorObject> {
        Ok(self.parts_from(params.stream, &params.meta)?.map(|_| id))
    }

    /// Returns the first part that a request wants, if it wants any.
    pub(crate) fn parts_from(
        &self,
        wish: Option<&RawValue>,
        meta: &RequestMeta<'_>,
    ) -> Result<Option<PartsFrom>, ErrorObject> {
        let Some(wish) = wish else { return Ok(None) };
        let modern =
            meta.protocol_version.parse().is_ok_and(|version: ProtocolVersion| version.era() == Era::Modern);
        if !modern || !self.takes_parts(meta) {
            return Ok(None);
        }
        let problem = "params.stream: an object is wanted, such as {} or, of a task, {\"from\": 3}";
        // serde would take an array for a struct.
        let wish = Some(wish.get()).filter(|wish| wish.starts_with('{'));
        let from = wish.and_then(|wish| json::from_str(wish).ok());
        from.map(Some).ok_or_else(|| ErrorObject::invalid_params(problem))
    }

    /// Returns whether the client of a request takes parts: it declares so, or need not (G1).
    fn takes_parts(&self, meta: &RequestMeta<'_>) -> bool {
        self.stream_undeclared || meta.client_capabilities.extensions.contains_key(STREAM_EXTENSION)
    }
}

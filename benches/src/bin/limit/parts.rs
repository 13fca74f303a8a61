//! The tool whose result is sent in parts, as events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    message::{Params, write_string},
    part::{PART, PARTS},
    tools::{write_head, write_text},
};

/// Bytes that are gathered for one write.
const CHUNK: usize = 32 * 1024;

/// Body of a result in parts. Each is written when the connection has room for it.
pub(crate) struct Parts {
    id: String,
    /// Event of a part up to its number.
    head: Vec<u8>,
    next: u32,
    /// The result so far.
    whole: String,
    ended: bool,
}

impl Parts {
    pub(crate) fn new(id: &str) -> Self {
        let head = format!(
            r#"data: {{"jsonrpc":"2.0","method":"notifications/dev.roundtrip/part","params":{{"requestId":{id},"part":"#
        );
        Self { id: id.to_owned(), head: head.into_bytes(), next: 0, whole: String::new(), ended: false }
    }

    fn write_part(&mut self, out: &mut Vec<u8>, text: &str) {
        out.extend_from_slice(&self.head);
        if serde_json::to_writer(&mut *out, &self.next).is_err() {
            unreachable!("writing a number to memory does not fail");
        }
        out.extend_from_slice(br#","content":{"type":"text","text":"#);
        write_string(out, text);
        out.extend_from_slice(b"}}}\n\n");
        self.whole.push_str(text);
        self.next += 1;
    }

    fn write_result(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        write_head(out, &self.id);
        write_text(out, &self.whole, false);
        out.extend_from_slice(b"}\n\n");
        self.ended = true;
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut out = Vec::with_capacity(CHUNK + 512);
        while self.next < PARTS && out.len() < CHUNK {
            self.write_part(&mut out, PART);
        }
        if self.next == PARTS {
            self.write_result(&mut out);
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

/// Returns whether the request wants parts, and declares that its client takes them.
pub(crate) fn wanted(params: &Params<'_>) -> bool {
    #[derive(Deserialize)]
    struct Capabilities {
        extensions: Option<Extensions>,
    }
    #[derive(Deserialize)]
    struct Extensions {
        #[serde(rename = "dev.roundtrip/stream")]
        stream: Option<IgnoredAny>,
    }
    let declared = params.meta.as_ref().and_then(|meta| meta.client_capabilities);
    let declared = declared.and_then(|raw| serde_json::from_str::<Capabilities>(raw.get()).ok());
    let takes = declared.and_then(|declared| declared.extensions?.stream).is_some();
    takes && params.stream.is_some_and(|wish| wish.get().starts_with('{'))
}

/// Writes the result for a client that wants no parts.
pub(crate) fn write_whole(out: &mut Vec<u8>) {
    write_text(out, &PART.repeat(PARTS as usize), false);
}

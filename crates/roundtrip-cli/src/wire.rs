//! A transport that shows what it carries.

use std::pin::Pin;
use std::task::{Context, Poll};

use anstream::println;
use anstyle::{AnsiColor, Style};
use bytes::Bytes;
use futures_core::Stream;
use roundtrip::Error;
use roundtrip::client::{BoxFuture, Incoming, Outgoing, Transport};

/// Prints every message on its way through another transport.
#[derive(Debug)]
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: Transport> Transport for Shown<T> {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        show("client", AnsiColor::Cyan, &outgoing.message);
        let sending = self.0.send(outgoing);
        Box::pin(async move { Ok(Box::pin(ShownAnswers(sending.await?)) as Incoming) })
    }
}

struct ShownAnswers(Incoming);

impl Stream for ShownAnswers {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.as_mut().poll_next(cx);
        if let Poll::Ready(Some(Ok(message))) = &next {
            show("server", AnsiColor::Green, message);
        }
        next
    }
}

fn show(who: &str, colour: AnsiColor, message: &[u8]) {
    let style = Style::new().fg_color(Some(colour.into()));
    println!("  {style}{who}{style:#}  {}", String::from_utf8_lossy(message));
}

//! One request in flight: its messages are read, checked against the request, and told apart.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use roundtrip_core::error::{Error, PeerMisbehaved, Sent};
use roundtrip_core::wire::{ErrorObject, Message, Raw, RequestId, clip, json};
use serde::Deserialize;
use tokio::task::coop;

use super::transport::{Incoming, Outgoing, Transport};

/// A request that has been sent. Dropping it cancels the request.
pub(crate) struct InFlight {
    id: RequestId,
    incoming: Incoming,
}

/// Message that answers a request, or precedes its answer.
#[derive(Debug)]
pub(crate) enum Event {
    Notification { method: String, params: Option<Raw> },
    Answer(Raw),
}

impl InFlight {
    pub(crate) async fn open(transport: &dyn Transport, outgoing: Outgoing) -> Result<Self, Error> {
        let id = outgoing.id.clone();
        Ok(Self { id, incoming: transport.send(outgoing).await? })
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Polls for the next message. After an error there is none.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        // A server that always has something to say must not keep timeouts, and other tasks, from their turn.
        let turn = ready!(coop::poll_proceed(cx));
        let next = ready!(self.incoming.as_mut().poll_next(cx));
        turn.made_progress();
        Poll::Ready(match next {
            Some(Ok(bytes)) => self.read(&bytes),
            Some(Err(error)) => Err(error),
            None => Err(Error::closed_by_server("the server ended the exchange", Sent::Maybe)),
        })
    }

    pub(crate) async fn event(&mut self) -> Result<Event, Error> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, Error> {
        match Message::decode(bytes) {
            Ok(Message::Notification(notification)) => Ok(Event::Notification {
                method: notification.method.into_owned(),
                params: notification.params.map(Raw::from),
            }),
            Ok(Message::Response(response)) => match (response.id, response.outcome) {
                (Some(id), _) if id != self.id => {
                    let why = format!("request {} was answered under the id {id}", self.id);
                    Err(PeerMisbehaved::WrongId(why).into())
                }
                (_, Ok(result)) => Ok(Event::Answer(result.into())),
                (_, Err(error)) => Err(error.into()),
            },
            Ok(Message::Request(request)) => {
                Err(PeerMisbehaved::SentRequest { method: clip(&request.method).into_owned() }.into())
            }
            Err(malformed) => match nameless_error(bytes) {
                Some(error) => Err(error.into()),
                None => Err(PeerMisbehaved::MalformedMessage(malformed.error.message.into_owned()).into()),
            },
        }
    }
}

/// Decodes an error whose id is null. Plain JSON-RPC has these where the request could not be read, and the caller
/// still wants to know.
pub(crate) fn nameless_error(bytes: &[u8]) -> Option<ErrorObject> {
    #[derive(Deserialize)]
    struct Nameless {
        id: Option<serde::de::IgnoredAny>,
        error: ErrorObject,
    }
    let found: Nameless = json::from_slice(bytes).ok()?;
    found.id.is_none().then_some(found.error)
}

//! Requests of the server's own that belong to no call, or to one that cannot be asked: the client's handlers answer
//! them where they come.

use roundtrip_core::wire::{ErrorObject, Raw, RequestId};
use serde_json::json;

use super::admit::Asked;
use super::link::{Failure, Link};
use super::session::Session;
use crate::client::Asker;

/// Answers a request of the server's own.
pub(super) async fn answer<L: Link>(
    session: &Session<L>,
    asker: &Asker,
    id: &RequestId,
    asked: Asked,
) -> Result<(), Failure> {
    let answer = match asked {
        Asked::Ping => Ok(Raw::from(json!({}))),
        Asked::Refused(error) => Err(error),
        Asked::Question(question) => {
            asker.answer(question, Some(session.name.clone())).await.map_err(|error| {
                // What went wrong in here is not the server's business.
                tracing::warn!(%error, "a question of the server was left without an answer");
                ErrorObject::internal("the client could not answer this")
            })
        }
    };
    session.respond(id, answer.as_ref()).await
}

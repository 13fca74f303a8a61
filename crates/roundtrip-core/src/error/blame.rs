//! Enums inside the blame: what happened, for programs; their texts are for people.

use std::time::Duration;

use super::RequestName;
use crate::auth::AuthError;
use crate::wire::ErrorObject;

/// Mistake of the calling code. Texts that begin with "not sent" are refusals of this client: the server has not seen the
/// request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// The server's URL cannot be called.
    #[error("{0}")]
    Url(String),
    /// A setting of the client, or of a call, that does not work.
    #[error("not sent: {0}")]
    Settings(String),
    /// A value that does not serialise, or not as what it has to be.
    #[error("not sent: {0}")]
    Unserializable(String),
    /// A key in `_meta` that the client fills in.
    #[error("not sent: {0}")]
    ReservedMeta(String),
    /// A name or value that cannot be in an HTTP header.
    #[error("not sent: {0}")]
    Header(String),
    /// The client declares that it answers such questions, and has no handler for them.
    #[error("{0}")]
    NoHandler(String),
    /// An answer to a question that was not asked.
    #[error("not sent: `{method}` did not ask `{key}`")]
    NotAsked {
        /// Method that was called.
        method: &'static str,
        /// Key of the answer.
        key: String,
    },
    /// An answer that does not fit its question.
    #[error("not sent: {0}")]
    UnfitAnswer(String),
    /// The call cannot go on before these questions are answered.
    #[error("not sent: these questions have no answer yet: {}", quoted(.keys))]
    Unanswered {
        /// Keys of the questions.
        keys: Vec<String>,
    },
    /// Settings with which no token can be got from this server.
    #[error("not sent: {0}")]
    Authorization(Box<AuthError>),
    /// The call is not open any more, at a server that keeps calls open between rounds: make it anew.
    #[error("not sent: {0}")]
    CallNotOpen(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Something that the peer cannot do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerIncompatible {
    /// The two sides have no protocol version in common.
    #[error("no protocol version in common: it speaks {theirs}, and this client {ours}")]
    NoCommonVersion {
        /// Versions of the peer, by its own account.
        theirs: String,
        /// Versions of this client.
        ours: String,
    },
    /// The peer does not speak the one version that this client was told to speak.
    #[error(
        "it speaks {theirs}, and this client is to speak {pinned} alone: leave `protocol` out, or name another"
    )]
    NotThePinnedVersion {
        /// Versions of the peer, by its own account.
        theirs: String,
        /// The version that the client was told to speak.
        pinned: String,
    },
    /// The server answers the first request of no era.
    #[error("{0}")]
    UnknownEra(String),
    /// The server speaks revisions with a handshake alone, and this client is built without those.
    #[error(
        "it does not answer `server/discover` as a modern server does: \
         for servers of earlier revisions, turn on the cargo feature `legacy`"
    )]
    HandshakeRequired,
    /// The server has no stream of changes.
    #[error("it offers no stream of changes: ask for the lists again instead")]
    NoChanges,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Something by which the peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// A message that is not JSON-RPC, or has parameters of another shape.
    #[error("{0}")]
    MalformedMessage(String),
    /// A result that the method cannot have.
    #[error("{0}")]
    MalformedResult(String),
    /// A structured result that does not fit the tool's output schema.
    #[error("{0}")]
    UnfitOutput(String),
    /// An answer under the id of another request.
    #[error("{0}")]
    WrongId(String),
    /// A request by the server, which this revision does not have.
    #[error("it sent a request (`{method}`), which a server of this revision never does")]
    SentRequest {
        /// Method of the request.
        method: String,
    },
    /// An HTTP response without a message where one was due.
    #[error("{0}")]
    UnexpectedResponse(String),
    /// A message that is larger than this client reads.
    #[error("{0}")]
    TooLarge(String),
    /// A question of a kind that this client did not declare.
    #[error("{0}")]
    NotOffered(String),
    /// More questions in one round than are allowed.
    #[error("{request} asks {asked} questions in one round, and {allowed} are allowed")]
    TooManyQuestions {
        /// Request that asks.
        request: RequestName,
        /// Number of questions in the round.
        asked: usize,
        /// Number that is allowed.
        allowed: usize,
    },
    /// A URL that no user may be sent to.
    #[error("{0}")]
    UnsafeUrl(String),
    /// A conversation for the model that breaks the rules of tool use.
    #[error("{0}")]
    UnfitMessage(String),
    /// A cursor that came before: the pages of the list would never end.
    #[error("the pages of `{method}` lead in a circle")]
    RepeatedCursor {
        /// Method that lists.
        method: &'static str,
    },
    /// A stream of changes that is not acknowledged, or not tagged with its id.
    #[error("{0}")]
    Subscription(String),
    /// Metadata or tokens by which a server, or its authorization server, breaks the rules of a sign-in.
    #[error("{0}")]
    Authorization(Box<AuthError>),
    /// A part of a result that came twice, or before the parts in front of it.
    #[error("{0}")]
    PartOutOfOrder(String),
    /// Many messages, and no answer among them.
    #[error("it sent {messages} messages without answering `{method}`")]
    NoAnswer {
        /// Method that was called.
        method: &'static str,
        /// Number of messages that were read.
        messages: usize,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Failure of a connection, with the whole text of its cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// No connection could be made, or no server process started.
    #[error("{0}")]
    NoConnection(String),
    /// The connection broke before the answer was complete.
    #[error("{0}")]
    Broken(String),
    /// The server closed the connection, ended, or ended the exchange, without an answer.
    #[error("{0}")]
    Closed(String),
    /// The session ended, at a server of an earlier revision.
    #[error("{0}")]
    SessionEnded(String),
    /// Changes came faster than they were taken, so that some would have been lost.
    #[error("this stream of changes fell too far behind: listen again, and take changes faster")]
    FellBehind,
}

impl Unreachable {
    /// Puts a clause ahead of the text.
    pub(super) fn after(self, clause: &str) -> Self {
        let told = |text: String| format!("{clause}: {text}");
        match self {
            Self::NoConnection(text) => Self::NoConnection(told(text)),
            Self::Broken(text) => Self::Broken(told(text)),
            Self::Closed(text) => Self::Closed(told(text)),
            Self::SessionEnded(text) => Self::SessionEnded(told(text)),
            Self::FellBehind => Self::FellBehind,
        }
    }
}

/// A bound of the caller's that was reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GaveUp {
    /// The server asked in more rounds than are allowed (`max_rounds`).
    #[error("{request} asks again after {rounds} rounds, and {allowed} are allowed")]
    TooManyRounds {
        /// Request that asks.
        request: RequestName,
        /// Number of rounds so far.
        rounds: u32,
        /// Number of rounds that are allowed.
        allowed: u32,
    },
    /// The server asked nothing and wanted to be called again for longer than is allowed.
    #[error("{request} wants to be called again and again, and {allowed:?} of that are allowed")]
    PolledTooLong {
        /// Request that is to be made again.
        request: RequestName,
        /// Time that is allowed.
        allowed: Duration,
    },
    /// A list is longer than a limit of the client allows.
    #[error(
        "`{method}` lists more than `{limit}` of the client's limits allows, which is {allowed}: raise it if that is right"
    )]
    ListTooLong {
        /// Method that lists.
        method: &'static str,
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        allowed: usize,
    },
    /// Too many calls wait for answers at a server that keeps calls open between rounds.
    #[error("{allowed} calls of this client wait for answers already, at a server of an earlier revision")]
    TooManyOpenCalls {
        /// Number of calls that are allowed.
        allowed: usize,
    },
}

/// End of a task without a result or an error of its own.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The task was cancelled, by this client or otherwise.
    #[error("the task of {request} was cancelled{}", because(.message.as_deref()))]
    Cancelled {
        /// Call that became the task.
        request: RequestName,
        /// The task's last `statusMessage`.
        message: Option<Box<str>>,
    },
    /// The server does not know the task: it has forgotten it, or the task belongs to another caller (-32602).
    #[error("the server does not know the task of {request}, or not any more: {error}")]
    Unknown {
        /// Call that became the task.
        request: RequestName,
        /// Error of the server.
        error: Box<ErrorObject>,
    },
    /// The task has not ended within its time to live.
    #[error("the task of {request} has not ended within its time to live, which is {ttl:?}")]
    Expired {
        /// Call that became the task.
        request: RequestName,
        /// Time to live from the task's creation.
        ttl: Duration,
    },
}

fn because(message: Option<&str>) -> String {
    message.map(|message| format!(": {message}")).unwrap_or_default()
}

/// Joins keys for people.
fn quoted(keys: &[String]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}

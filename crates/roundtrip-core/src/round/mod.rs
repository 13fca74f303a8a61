//! One round of a flow: its questions, their answers, and the journal between rounds.
//!
//! A flow is a call and all its retries. Between two rounds its state is a [`Journal`], which the server seals and
//! the client carries. When a round begins, the client's new answers are merged into it; as the handler runs, it
//! asks its [`Question`]s against it. An answer counts only for a question this flow has asked, as it was asked: the
//! journal pins each answer to a keyed digest of its question ([`Pin`]).

mod answer;
mod asked;
mod decode;
pub mod inspect;
mod journal;
mod pin;
mod question;
pub mod read;
mod responses;
mod sent;

pub use answer::{Answered, FullAnswer, Settled, Unusable, fits};
pub use asked::{Askable, AskedAs, Page, Roots, Sampled, Samples, Visited, Visits};
pub use decode::MalformedJournal;
pub use journal::{Found, Journal, Kind, LastPiece, Place, Stalled, TraceContext};
pub use pin::{Pin, PinKey};
pub use question::{Question, QuestionKind};
pub use responses::read_responses;
pub use sent::{Compared, SentNotifications};

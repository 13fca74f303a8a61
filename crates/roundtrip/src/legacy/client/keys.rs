//! Keys of the questions of a server, which has none for them.

use roundtrip_core::seal::digest_arguments;
use roundtrip_core::wire::{InputRequest, Raw};

/// Returns the key of a question, given its number in its call. Those of a task have a suffix, so that no two are the same in its
/// life; what stands before it tells the question, in whatever process: an answer to the same question fits there too.
pub(super) fn key(question: &InputRequest, number: u32, suffix: Option<&str>) -> String {
    match suffix {
        None => format!("{}-{number}", kind(question)),
        Some(suffix) => format!("{}-{}-{suffix}.{number}", kind(question), fingerprint(question)),
    }
}

/// Returns a short digest of a question.
fn fingerprint(question: &InputRequest) -> String {
    let digest = Raw::of(question).ok().and_then(|text| digest_arguments(Some(text.get())).ok());
    digest.iter().flat_map(|digest| &digest.as_bytes()[..8]).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the part of a task's key that tells the question.
pub(super) fn stem(key: &str) -> &str {
    key.rsplit_once('-').map_or(key, |(stem, _)| stem)
}

fn kind(question: &InputRequest) -> &'static str {
    match question {
        InputRequest::Elicit(_) => "elicitation",
        InputRequest::CreateMessage(_) => "sampling",
        InputRequest::ListRoots(_) => "roots",
    }
}

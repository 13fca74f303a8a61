//! Search for accounts that wait for a worker.

use std::collections::BTreeSet;

use roundtrip::seal::Digest;
use roundtrip::task::{Millis, Waiting};

use super::rows::{Answer, Pair, PairSearch, Rows};
use crate::retry::retry;

/// Most pairs of free tasks, and of held ones, that are looked at in one exchange.
const STEPS: usize = 256;

/// Returns kinds and accounts with tasks that are due, in order. Tasks whose worker is gone wait like free ones.
pub(super) async fn waiting(
    rows: &impl Rows,
    (service, kinds): (&Digest, &[Digest]),
    after: Option<Waiting>,
    most: usize,
    now: Millis,
) -> Answer<Vec<Waiting>> {
    let knows = |kind: &Digest| kinds.binary_search(kind).is_ok();
    let after = after.map(|pair| if knows(&pair.kind) { pair } else { last_of(pair.kind) });
    let mut search = PairSearch { service: *service, kinds: kinds.to_vec(), after, steps: STEPS, due: most };
    let mut found = BTreeSet::new();
    while found.len() < most {
        let pairs = retry(|| rows.pairs(&search, now)).await?;
        // What follows the end of a search that was cut short is not known yet.
        let horizon = [false, true].into_iter().filter_map(|held| cut_short(&pairs, held, &search)).min();
        let due = pairs.iter().filter(|pair| pair.is_due).map(|pair| pair.waiting);
        found.extend(due.filter(|pair| horizon.is_none_or(|horizon| *pair <= horizon)));
        let Some(end) = horizon else { break };
        search.after = Some(if knows(&end.kind) { end } else { last_of(end.kind) });
    }
    Ok(found.into_iter().take(most).collect())
}

/// Returns the last pair of the free or of the held tasks, if there may be more.
fn cut_short(pairs: &[Pair], held: bool, search: &PairSearch) -> Option<Waiting> {
    let side = || pairs.iter().filter(|pair| pair.held == held);
    let is_cut = side().count() >= search.steps || side().filter(|pair| pair.is_due).count() >= search.due;
    side().map(|pair| pair.waiting).max().filter(|_| is_cut)
}

/// Returns the last pair that a kind can have.
pub(crate) fn last_of(kind: Digest) -> Waiting {
    Waiting { kind, account: Digest::from_bytes([u8::MAX; Digest::LEN]) }
}

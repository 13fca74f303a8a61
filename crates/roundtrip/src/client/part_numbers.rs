//! The numbers of a result's parts: each comes once, and in order.

use roundtrip_core::error::{Error, PeerMisbehaved};

/// Numbers of the parts that a call has been sent, over all its requests.
#[derive(Debug, Default)]
pub(crate) struct PartNumbers {
    /// Number of the next part that is new.
    next: u32,
    /// Number that must come next in the response under way, once it has begun to send parts.
    due: Option<u32>,
    /// True once a request was sent again: its parts come again, or were lost with the first response.
    again: bool,
}

impl PartNumbers {
    /// Begins a response.
    pub(crate) fn begin_response(&mut self) {
        self.due = None;
    }

    /// Begins a response in place of one that broke off.
    pub(crate) fn begin_again(&mut self) {
        self.again = true;
    }

    /// Returns whether a part is new.
    pub(crate) fn is_new(&mut self, part: u32) -> Result<bool, Error> {
        let due = self.due.unwrap_or(if self.again { part } else { self.next });
        if part != due {
            let why = format!("it sent part {part} of a result where part {due} was due");
            return Err(PeerMisbehaved::PartOutOfOrder(why).into());
        }
        self.due = Some(part.saturating_add(1));
        let is_new = part >= self.next;
        self.next = self.next.max(part.saturating_add(1));
        Ok(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(numbers: &mut PartNumbers, parts: &[u32]) -> Vec<u32> {
        numbers.begin_response();
        parts.iter().copied().filter(|part| numbers.is_new(*part).expect("in order")).collect()
    }

    /// G3: parts are numbered over the rounds; a repetition and a gap are the server's mistake.
    #[test]
    fn numbers_go_on_over_the_rounds() {
        let mut numbers = PartNumbers::default();
        assert_eq!(taken(&mut numbers, &[0, 1]), [0, 1]);
        assert_eq!(taken(&mut numbers, &[2, 3]), [2, 3]);
        for wrong in [3, 5] {
            let error = numbers.is_new(wrong).expect_err("out of order").to_string();
            assert!(error.contains(&format!("part {wrong} ")) && error.contains("part 4 "), "{error}");
        }
        numbers.begin_response();
        assert!(numbers.is_new(3).is_err(), "a later round repeats none");
        assert!(numbers.is_new(5).is_err(), "nor leaves one out");
    }

    /// G6: parts of a request that was sent again are taken once.
    #[test]
    fn parts_sent_again_are_taken_once() {
        let mut numbers = PartNumbers::default();
        assert_eq!(taken(&mut numbers, &[0, 1, 2]), [0, 1, 2]);
        numbers.begin_again();
        assert_eq!(taken(&mut numbers, &[0, 1, 2, 3]), [3]);
        assert_eq!(
            taken(&mut numbers, &[7]),
            [7],
            "the round before was answered from the ledger, without parts"
        );
    }
}

//! Record of the notifications that the rounds of a flow have sent, so that a replay does not repeat them.

use super::decode::{MalformedJournal, Reader};
use crate::seal::Digest;

/// Number of log messages that are told apart one by one.
const TAGS: usize = 16;

/// Bit of the number of log messages that says that a number of parts follows.
const HAS_PARTS: u32 = 1 << 31;

/// First bytes of the running digest behind a message.
type Tag = [u8; 2];

/// Record of notifications: the number of log messages and their running digest, the greatest progress, and the number of
/// parts of a streamed result.
///
/// Its size is bounded, whatever was sent. A short tag for each of the first messages tells where a replay begins to differ;
/// behind them, only the whole can be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct SentNotifications {
    logs: u32,
    digest: Digest,
    tags: [Tag; TAGS],
    /// The greatest progress that was reported.
    pub progress: Option<f64>,
    /// Number of parts of the result.
    pub parts: u32,
}

/// Result of comparing the last message of a replay with an earlier record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The message was sent before, and so were all before it.
    Same,
    /// The message, or one before it, was not sent before.
    Differs,
    /// Not known yet: the message is beyond those that are compared one by one.
    Undecided,
}

impl Default for SentNotifications {
    /// Nothing was sent.
    fn default() -> Self {
        let digest = Digest::from_bytes([0; Digest::LEN]);
        Self { logs: 0, digest, tags: [[0; 2]; TAGS], progress: None, parts: 0 }
    }
}

impl SentNotifications {
    /// Returns the number of log messages.
    pub const fn logs(&self) -> u32 {
        self.logs
    }

    /// Adds a log message: its level, and its data as JSON.
    pub fn log(&mut self, level: u8, data: &str) {
        self.digest = Digest::of("sent", &[self.digest.as_bytes(), &[level], data.as_bytes()]);
        if let (Some(tag), [first, second, ..]) =
            (self.tags.get_mut(self.logs as usize), self.digest.as_bytes())
        {
            *tag = [*first, *second];
        }
        self.logs = (self.logs + 1).min(HAS_PARTS - 1);
    }

    /// Compares the last log message with the one at its place in an earlier record, all before it having been the same.
    pub fn compare(&self, earlier: &Self) -> Compared {
        let last = (self.logs as usize).saturating_sub(1);
        let same = if self.logs == earlier.logs {
            self.digest == earlier.digest
        } else if self.logs > earlier.logs {
            false
        } else if last < TAGS {
            self.tags.get(last) == earlier.tags.get(last)
        } else {
            return Compared::Undecided;
        };
        if same { Compared::Same } else { Compared::Differs }
    }

    /// Encodes the record: 12 bytes, 4 more for parts, and for log messages 18 to 48 more.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let has_parts = if self.parts > 0 { HAS_PARTS } else { 0 };
        out.extend_from_slice(&(self.logs | has_parts).to_le_bytes());
        // No progress is not a number, which is never reported.
        out.extend_from_slice(&self.progress.unwrap_or(f64::NAN).to_le_bytes());
        if self.parts > 0 {
            out.extend_from_slice(&self.parts.to_le_bytes());
        }
        if self.logs > 0 {
            out.extend_from_slice(self.digest.as_bytes());
            self.tags.iter().take(self.logs as usize).for_each(|tag| out.extend_from_slice(tag));
        }
    }

    /// Decodes a record.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, MalformedJournal> {
        let head = u32::from_le_bytes(reader.chunk()?);
        let logs = head & !HAS_PARTS;
        let progress = Some(f64::from_le_bytes(reader.chunk()?)).filter(|progress| progress.is_finite());
        let parts = if head == logs { 0 } else { u32::from_le_bytes(reader.chunk()?) };
        let mut sent = Self { logs, progress, parts, ..Self::default() };
        if logs > 0 {
            sent.digest = Digest::from_bytes(reader.chunk()?);
            for tag in sent.tags.iter_mut().take(logs as usize) {
                *tag = reader.chunk()?;
            }
        }
        Ok(sent)
    }
}

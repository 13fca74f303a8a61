//! Result in parts that the servers send and the load generator expects.

/// Number of parts.
pub(crate) const PARTS: u32 = 10_000;

/// Text of each part: 100 bytes, a line of a log.
pub(crate) const PART: &str =
    "2026-07-28T12:00:00.000Z  INFO deploy: copied layer 7 of 12 to the registry, 4096 blocks verified .\n";

//! Protocol revisions, and the two eras they fall into (versioning, "Terminology").

use std::fmt;
use std::str::FromStr;

/// A revision of the protocol that Roundtrip knows by name, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// `2024-11-05`
    V2024_11_05,
    /// `2025-03-26`
    V2025_03_26,
    /// `2025-06-18`
    V2025_06_18,
    /// `2025-11-25`
    V2025_11_25,
    /// `2026-07-28`: stateless, with multi round-trip requests
    V2026_07_28,
}

/// Era of a revision: the way it carries version, identity and capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// In a session opened by `initialize` (2025-11-25 and before).
    Handshake,
    /// In the `_meta` of every request (2026-07-28 and later).
    Modern,
}

impl ProtocolVersion {
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The revisions that every transport carries, newest first. Roundtrip speaks 2024-11-05 on pipes only.
    pub const ON_EVERY_TRANSPORT: [Self; 4] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26];

    /// Returns the revision as it is spelled on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns whether the revision has the experimental tasks that a call asks for with `task`.
    pub const fn has_experimental_tasks(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Returns the era of this revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Handshake,
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A version string that names no revision Roundtrip knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version `{0}`")]
pub struct UnknownVersion(pub String);

impl FromStr for ProtocolVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        // The newest is by far the most frequent on the wire.
        Self::ALL
            .into_iter()
            .rev()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_reads_back_as_written_and_only_the_newest_is_modern() {
        for version in ProtocolVersion::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
            assert_eq!(version.era() == Era::Modern, version == ProtocolVersion::LATEST);
        }
        assert_eq!("2026-07-28 ".parse::<ProtocolVersion>(), Err(UnknownVersion("2026-07-28 ".into())));
    }
}

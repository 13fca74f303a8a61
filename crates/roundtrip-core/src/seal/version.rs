//! Versions of tokens.

/// Version of a token's content.
///
/// Every release opens the versions of all releases before it. A release writes a new version only where it is set so: in a rolling
/// update, instances of the release before could not open it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TokenVersion {
    /// The first version. Its tokens are bound to a principal, and to no OAuth client.
    #[default]
    V1,
    /// The second version. Its tokens are bound to the OAuth client as well, where there is one.
    V2,
}

impl TokenVersion {
    /// Returns the byte that stands for it inside a token.
    pub(super) const fn as_byte(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// Returns the version that a byte stands for.
    pub(super) const fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }
}

//! Identity of a task, and of its owner.

use std::fmt;
use std::sync::LazyLock;

use roundtrip_core::seal::Digest;

/// Identifier of a task: 128 random bits, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId([u8; 32]);

impl TaskId {
    /// Creates an identifier from random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |at: usize| DIGITS[usize::from(random[at / 2] >> (4 * (1 - at % 2)) & 0xf)];
        Self(std::array::from_fn(digit))
    }

    /// Reads the identifier in a request. `None` is one that no task has.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
        digits.iter().all(|byte| fits(*byte)).then_some(Self(*digits))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        // Always digits.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the identifier that sorts before all others.
    pub(super) fn first() -> Self {
        Self::new([0; 16])
    }

    /// Returns the identifier that sorts behind all others.
    pub(super) fn last() -> Self {
        Self::new([u8::MAX; 16])
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskId").field(&self.as_str()).finish()
    }
}

/// Owner of a task: the digest of the principal that created it. Callers without a principal are one owner, for whom the
/// identifier of a task is what gives access to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskOwner(Digest);

impl TaskOwner {
    /// Returns the owner of the tasks of a principal.
    pub fn new(principal: Option<&str>) -> Self {
        static ANONYMOUS: LazyLock<Digest> = LazyLock::new(|| Digest::of("task-owner", &[b"anonymous"]));
        Self(match principal {
            Some(principal) => Digest::of("task-owner", &[b"principal", principal.as_bytes()]),
            None => *ANONYMOUS,
        })
    }

    /// Restores an owner from the bytes in a column of a store.
    pub fn from_bytes(bytes: [u8; Digest::LEN]) -> Self {
        Self(Digest::from_bytes(bytes))
    }

    /// Returns the bytes, for a column of a store.
    pub fn as_bytes(&self) -> &[u8; Digest::LEN] {
        self.0.as_bytes()
    }
}

/// Returns the kind of a tool's tasks: the digest of its name and its version.
pub(crate) fn task_kind(tool: &str, version: &str) -> Digest {
    Digest::of("task-kind", &[tool.as_bytes(), version.as_bytes()])
}

/// Returns the service of a server: the digest of its audience.
pub(crate) fn task_service(audience: &str) -> Digest {
    Digest::of("task-service", &[audience.as_bytes()])
}

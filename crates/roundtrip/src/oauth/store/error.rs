//! Errors of stores.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use roundtrip_core::auth::AuthError;

/// Error of a store of tokens. It never quotes what is stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory cannot be used.
    #[error("`{path}` cannot be used: {source}")]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// A stored record cannot be read.
    #[error("the stored record `{path}` cannot be used, as {why}: delete the file and sign in again")]
    Corrupt {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        why: &'static str,
    },
    /// Other users of the machine could replace stored records.
    #[error(
        "other users can write to the directory `{path}`: take that permission from them, or choose another one"
    )]
    Exposed {
        /// Path of the directory.
        path: PathBuf,
    },
    /// A directory or a file belongs to another user, who could change it at any time.
    #[error("`{path}` belongs to another user: choose a directory of yours, or run the program as that user")]
    Foreign {
        /// Path of the directory or file.
        path: PathBuf,
    },
    /// Another client holds the lock and does not release it.
    #[error(
        "another process has been renewing the token for more than {} s: try again, and end it if it hangs",
        waited.as_secs()
    )]
    Busy {
        /// Time that was waited.
        waited: Duration,
    },
    /// The store cannot be reached, or failed.
    #[error("{0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl StoreError {
    pub(super) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

impl From<StoreError> for AuthError {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Busy { .. } | StoreError::Failed(_) => Self::StoreUnavailable(text),
            _ => Self::Store(text),
        }
    }
}

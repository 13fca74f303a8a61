//! Folder of the user's sign-ins: what is known of each, and tokens where there is no keyring.

use std::io::ErrorKind;
use std::path::PathBuf;

use roundtrip::oauth::store::FileStore;
use roundtrip::seal::Digest;
use roundtrip::wire::json;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::files;

/// Version of the format of a note.
const VERSION: u32 = 1;
/// Greatest size of a note, in bytes.
const MAX_NOTE: u64 = 64 * 1024;

/// Place in which the tokens of a server are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Place {
    /// Keyring of the operating system.
    Keyring,
    /// File of the library's store.
    File,
}

/// Note on the sign-in at a server. It has no secrets, and says where these are: the keyring is left alone where there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Note {
    version: u32,
    server: String,
    pub(super) kept_in: Place,
    /// Issuer that the user named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issuer: Option<String>,
}

impl Note {
    pub(super) fn new(server: &str, kept_in: Place, issuer: Option<String>) -> Self {
        Self { version: VERSION, server: server.to_owned(), kept_in, issuer }
    }
}

/// The folder, which may not be there yet.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Returns the folder below the user's data, or `None` for a user without a home.
    pub(super) fn of_user() -> Option<Self> {
        Some(Self(files::data_folder()?.join("tokens")))
    }

    /// Returns its path, for people.
    pub(super) fn shown(&self) -> String {
        self.0.display().to_string()
    }

    /// Opens the store of files in it, and makes the folder.
    pub(super) fn files(&self) -> Result<FileStore, Failure> {
        FileStore::open(&self.0).map_err(|error| Failure::usage(error.to_string()))
    }

    /// Opens the store of files in it, if the folder is there. One that others could write to is refused: nothing in it is read.
    pub(super) fn files_if_there(&self) -> Result<Option<FileStore>, Failure> {
        if self.0.try_exists().unwrap_or(false) { self.files().map(Some) } else { Ok(None) }
    }

    /// Reads the note on a server, if there is one, in a folder whose files were opened before.
    pub(super) fn note(&self, server: &str) -> Result<Option<Note>, Failure> {
        let path = self.path(server);
        let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
        let Some(text) = files::read_own(&path, MAX_NOTE).map_err(|why| wrong(&why))? else {
            return Ok(None);
        };
        let note: Note = json::from_str(&text).map_err(|error| wrong(&error))?;
        if note.version != VERSION || note.server != server {
            let why =
                "is of another server, or of another version of this program: delete it, and sign in again";
            return Err(Failure::usage(format!("{} {why}", path.display())));
        }
        Ok(Some(note))
    }

    /// Writes a note. The folder is there.
    pub(super) fn write(&self, note: &Note) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(note).map_err(|error| Failure::usage(error.to_string()))?;
        files::write_private(&self.path(&note.server), &text)
    }

    /// Deletes the note on a server; none is no error.
    pub(super) fn forget(&self, server: &str) -> Result<(), Failure> {
        let path = self.path(server);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::usage(format!("{} cannot be deleted: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Returns the path of a note. Its name is a digest: a URL has characters that paths do not.
    fn path(&self, server: &str) -> PathBuf {
        self.0.join(format!("{}.sign-in", Digest::of("sign-in", &[server.as_bytes()])))
    }
}

#[cfg(test)]
mod tests {
    use roundtrip::wire::json::from_str;
    use serde_json::json;

    use super::*;
    use crate::listed::assert_read_by_name;

    #[test]
    fn a_list_is_not_taken_for_a_note() {
        let note =
            json!({ "version": VERSION, "server": "https://a", "keptIn": "file", "issuer": "https://b" });
        assert_read_by_name(&note, |note| from_str::<Note>(&note.to_string()).is_ok());
    }
}

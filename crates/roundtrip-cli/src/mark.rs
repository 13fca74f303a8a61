//! Marks of saved flows, by a key of this user: they tell what `--save` has written here from files of others.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip::seal::{Keyring, RecordLabel};
use zeroize::Zeroizing;

use crate::commands::keys;
use crate::exit::Failure;
use crate::files;

/// Name of the file with the key.
const KEY: &str = "flows.key";
/// Greatest size of that file, in bytes.
const MAX_KEY: u64 = 4096;
/// Kind of what is marked, so that no mark is good for anything else.
const KIND: &str = "saved flow";

/// Marks a text. `None` if there is nowhere to keep a key: the file is then as one of somebody else.
pub(crate) fn mark(text: &str) -> Option<String> {
    let key = key_file()?;
    let ring = match read(&key) {
        Some(ring) => ring,
        None => create(&key).ok()?,
    };
    let mut nonce = [0; 24];
    getrandom::fill(&mut nonce).ok()?;
    // The text is authenticated, and nothing is hidden.
    let sealed = ring.seal_record(label(text), &[], nonce).ok()?;
    Some(URL_SAFE_NO_PAD.encode(sealed))
}

/// Returns whether the key of this user has marked a text.
pub(crate) fn is_ours(mark: &str, text: &str) -> bool {
    let ring = key_file().and_then(|key| read(&key));
    let sealed = URL_SAFE_NO_PAD.decode(mark);
    matches!((ring, sealed), (Some(ring), Ok(sealed)) if ring.open_record(label(text), &sealed).is_ok())
}

fn label(text: &str) -> RecordLabel<'_> {
    RecordLabel { kind: KIND, id: text.as_bytes() }
}

fn key_file() -> Option<PathBuf> {
    Some(files::data_folder()?.join(KEY))
}

/// Reads the key. One that others could have read or written marks nothing.
fn read(file: &Path) -> Option<Keyring> {
    let found = fs::symlink_metadata(file).ok()?;
    #[cfg(unix)]
    let is_private = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 == 0;
    #[cfg(not(unix))]
    let is_private = true;
    if !found.is_file() || !is_private {
        return None;
    }
    let text = Zeroizing::new(files::read_own(file, MAX_KEY).ok()??);
    Keyring::parse(&text).ok()
}

/// Makes a key, instead of one that cannot be used.
fn create(file: &Path) -> Result<Keyring, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", file.display()));
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(file.parent().unwrap_or(file)).map_err(|error| wrong(&error))?;
    let key = Zeroizing::new(keys::fresh()?);
    files::write_private(file, &key)?;
    read(file).ok_or_else(|| wrong(&"the key cannot be read"))
}

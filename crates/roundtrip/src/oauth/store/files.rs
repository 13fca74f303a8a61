//! Files with secrets: private to their owner, replaced atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use roundtrip_core::seal::Digest;
use zeroize::Zeroizing;

use super::StoreError;

/// Longest file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;
/// Age at which a temporary file is no longer being written: its process has ended.
const STALE: Duration = Duration::from_secs(3600);
/// Ending of temporary files.
const TEMPORARY: &str = "tmp";
/// Number of hexadecimal digits of the random number in their names.
const RANDOM_DIGITS: usize = 16;

/// Makes a directory, with its parents, or checks the one that is there.
pub(super) fn make_directory(path: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| StoreError::io(path, error))?;
    check_directory(path)
}

/// Refuses a directory of another user, and one in which other users could replace files. Parents may be root's too, and are refused
/// if every user could move what is in them. One that others can merely list is taken: files are private.
#[cfg(unix)]
fn check_directory(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let failed = |error| StoreError::io(path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    check_owner(path, &metadata)?;
    if metadata.permissions().mode() & 0o022 != 0 {
        return Err(StoreError::Exposed { path: path.to_owned() });
    }
    for parent in fs::canonicalize(path).map_err(failed)?.ancestors().skip(1) {
        let metadata = fs::metadata(parent).map_err(|error| StoreError::io(parent, error))?;
        check_parent(parent, metadata.uid(), metadata.permissions().mode())?;
    }
    Ok(())
}

/// Refuses a parent whose owner, or any other user, could replace what is below it.
#[cfg(unix)]
fn check_parent(path: &Path, owner: u32, mode: u32) -> Result<(), StoreError> {
    const ROOT: u32 = 0;
    const STICKY: u32 = 0o1000;
    if owner != ROOT && owner != nix::unistd::geteuid().as_raw() {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    // Many systems let a user's own group write to the user's directories: parents are not refused for that.
    if mode & 0o002 != 0 && mode & STICKY == 0 {
        return Err(StoreError::Exposed { path: path.to_owned() });
    }
    Ok(())
}

/// Refuses what another user owns, who could change it at any time.
#[cfg(unix)]
fn check_owner(path: &Path, metadata: &fs::Metadata) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;
    if metadata.uid() == nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    Err(StoreError::Foreign { path: path.to_owned() })
}

#[cfg(not(unix))]
fn check_directory(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_: &Path, _: &fs::Metadata) -> Result<(), StoreError> {
    Ok(())
}

/// Opens a file of this user's. A link is not followed, and nothing but a regular file is taken: a pipe could be waited for without
/// end.
fn open(path: &Path, mut options: OpenOptions) -> Result<Option<File>, StoreError> {
    let corrupt = |why| StoreError::Corrupt { path: path.to_owned(), why };
    #[cfg(unix)]
    {
        use nix::fcntl::OFlag;
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    }
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => {
            return Err(corrupt("it is a link"));
        }
        Err(error) => return Err(StoreError::io(path, error)),
    };
    let metadata = file.metadata().map_err(|error| StoreError::io(path, error))?;
    if !metadata.is_file() {
        return Err(corrupt("it is not a regular file"));
    }
    check_owner(path, &metadata)?;
    Ok(Some(file))
}

/// Deletes temporary files that a crash has left: they contain secrets. Files with other names than ours are left alone.
pub(super) fn sweep(directory: &Path) {
    let stale = |path: &Path| {
        let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > STALE))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_str().is_some_and(is_temporary) && stale(&path) {
            // Another process may have deleted it first.
            fs::remove_file(&path).ok();
        }
    }
}

/// Returns whether a name is that of a temporary file of a store: the digest of a record, a random number, and the ending.
fn is_temporary(name: &str) -> bool {
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts: Vec<&str> = name.split('.').collect();
    matches!(parts[..], [record, random, TEMPORARY]
        if is_hex(record, 2 * Digest::LEN) && is_hex(random, RANDOM_DIGITS))
}

/// Reads a file, if it is there, and takes the permission to read it from everyone but its owner.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
    let failed = |error| StoreError::io(path, error);
    let mut options = OpenOptions::new();
    options.read(true);
    let Some(file) = open(path, options)? else { return Ok(None) };
    tighten(path, &file).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > LONGEST {
        return Err(StoreError::Corrupt { path: path.to_owned(), why: "it is too long" });
    }
    // Room for all of it from the start: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize + 1));
    file.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

#[cfg(unix)]
fn tighten(path: &Path, file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    tracing::warn!(path = %path.display(), mode = %format_args!("{:o}", mode & 0o777), "other users could read stored tokens; they cannot any more");
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn tighten(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

/// Replaces a file: after a crash there is the old one or the new one, and never a part.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let failed = |error| StoreError::io(path, error);
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| StoreError::Failed(Box::new(error)))?;
    let temporary =
        path.with_extension(format!("{:0RANDOM_DIGITS$x}.{TEMPORARY}", u64::from_ne_bytes(random)));
    let written = write(&temporary, bytes).and_then(|()| rename(&temporary, path));
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written.and_then(|()| flush_directory(path)).map_err(failed)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(not(windows))]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Renames a file. Windows refuses while another process has the target open, which a reader does for a moment.
#[cfg(windows)]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    const ATTEMPTS: u32 = 50;
    for _ in 1..ATTEMPTS {
        match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                std::thread::sleep(Duration::from_millis(10));
            }
            renamed => return renamed,
        }
    }
    fs::rename(from, to)
}

/// Makes the rename survive a loss of power.
fn flush_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if cfg!(unix) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

/// Deletes a file; none is no error.
pub(super) fn delete(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}

/// Opens a lock file, which is made if it is not there.
pub(super) fn open_lock(path: &Path) -> Result<File, StoreError> {
    let mut options = private();
    options.write(true).create(true).truncate(false);
    open(path, options)?.ok_or_else(|| StoreError::io(path, io::ErrorKind::NotFound.into()))
}

/// Returns options that make a file of its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// O86: a parent of another user is refused, sticky or not, because its owner may move what is in it; root's and the user's own
    /// are taken, also where a group may write.
    #[test]
    fn a_parent_of_another_user_is_refused() {
        let parent = Path::new("/home/parent");
        let ours = nix::unistd::geteuid().as_raw();
        for mode in [0o755, 0o700, 0o1777] {
            let refused = check_parent(parent, ours + 12345, mode).expect_err("another user's");
            assert!(refused.to_string().contains("another user"), "{refused}");
        }
        for owner in [0, ours] {
            for mode in [0o755, 0o775, 0o1777] {
                check_parent(parent, owner, mode).expect("a directory that nobody else can change");
            }
            check_parent(parent, owner, 0o777).expect_err("every user can write to it");
        }
    }
}

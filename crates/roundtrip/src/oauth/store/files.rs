//! Files with secrets: private to their owner, replaced atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use zeroize::Zeroizing;

use super::StoreError;

/// Longest file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;
/// Age at which a temporary file is no longer being written: its process has ended.
const STALE: Duration = Duration::from_secs(3600);
/// Ending of temporary files.
const TEMPORARY: &str = "tmp";

/// Makes a directory, with its parents, or checks the one that is there.
pub(super) fn make_directory(path: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| StoreError::io(path, error))?;
    check_directory(path)
}

/// Refuses a directory in which other users could replace files. One that they can merely list is taken: files are private.
#[cfg(unix)]
fn check_directory(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(path).map_err(|error| StoreError::io(path, error))?;
    if metadata.permissions().mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(StoreError::Exposed { path: path.to_owned() })
}

#[cfg(not(unix))]
fn check_directory(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Deletes temporary files that a crash has left: they contain secrets.
pub(super) fn sweep(directory: &Path) {
    let stale = |path: &Path| {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > STALE))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == TEMPORARY) && stale(&path) {
            // Another process may have deleted it first.
            fs::remove_file(&path).ok();
        }
    }
}

/// Reads a file, if it is there, and takes the permission to read it from everyone but its owner.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
    let failed = |error| StoreError::io(path, error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
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
    let temporary = path.with_extension(format!("{:016x}.{TEMPORARY}", u64::from_ne_bytes(random)));
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
    let file = private().write(true).create(true).truncate(false).open(path);
    file.map_err(|error| StoreError::io(path, error))
}

/// Returns options that make a file of its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

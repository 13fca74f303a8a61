//! Files that users name: read within bounds, and written for their owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use roundtrip::wire::json;
use serde::de::DeserializeOwned;

use crate::exit::Failure;

/// Greatest size of a file that is read, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Returns the folder for data of the command, or `None` for a user without a home.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        match std::env::consts::OS {
            "windows" => variable("LOCALAPPDATA"),
            "macos" => Some(home?.join("Library/Application Support")),
            _ => Some(home?.join(".local/share")),
        }
    };
    Some(variable("XDG_DATA_HOME").or_else(usual)?.join("roundtrip"))
}

/// Reads a text file; `-` is standard input.
pub(crate) fn read_text(file: &Path) -> Result<String, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", file.display()));
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        io::stdin().lock().take(MAX_FILE + 1).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text))
    };
    match read {
        Ok(size) if size as u64 > MAX_FILE => Err(wrong(&format!("more than {MAX_FILE} bytes"))),
        Ok(_) => Ok(text),
        Err(error) => Err(wrong(&error)),
    }
}

/// Reads a regular text file of so many bytes at most. A device may have no end, and a pipe may never have a beginning.
pub(crate) fn read_regular(file: &Path, most: u64) -> Result<String, String> {
    let read = opened(file, Links::Follow).and_then(|file| bounded(&file, most));
    read.map_err(|error| error.to_string())
}

/// Reads a file of this user's, if it is there, as [`read_regular`] does. A link is not followed, and a file of another user is not
/// read: its owner could change it at any time.
pub(crate) fn read_own(file: &Path, most: u64) -> Result<Option<String>, String> {
    let read = || {
        let file = match opened(file, Links::Refuse) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::uid(&file.metadata()?) != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        bounded(&file, most).map(Some)
    };
    read().map_err(|error| error.to_string())
}

/// Treatment of symbolic links.
#[derive(Clone, Copy, PartialEq)]
enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file, and waits for nothing.
fn opened(file: &Path, links: Links) -> io::Result<fs::File> {
    let refused = |why: &str| Err(io::Error::other(why));
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // Opening a pipe would wait for its other end. It is judged once it is open, so that no other file takes its place meanwhile.
        let follow = if links == Links::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = (OFlags::NONBLOCK | follow).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let opened = match options.open(file) {
        Err(_) if links == Links::Refuse && file.is_symlink() => return refused("it is a link"),
        opened => opened?,
    };
    if opened.metadata()?.is_file() { Ok(opened) } else { refused("it is not a regular file") }
}

/// Reads a text of so many bytes at most.
fn bounded(file: &fs::File, most: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(text)
}

/// Reads a file of JSON.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    json::from_str(&read_text(file)?).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

/// Writes a file that only its owner can read. Either all of it is there or the file that was there before.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), Failure> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = Path::new(&beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(beside, file)).map_err(|error| {
        let _ = fs::remove_file(beside);
        Failure::usage(format!("{} cannot be written: {error}", file.display()))
    })
}

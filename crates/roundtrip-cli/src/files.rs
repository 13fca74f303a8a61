//! Files that users name: read within bounds, and written for their owner alone.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::exit::Failure;

/// Greatest size of a file that is read, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Reads a text file; `-` is standard input.
pub(crate) fn read_text(file: &Path) -> Result<String, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", file.display()));
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_FILE + 1).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text))
    };
    match read {
        Ok(size) if size as u64 > MAX_FILE => Err(wrong(&format!("more than {MAX_FILE} bytes"))),
        Ok(_) => Ok(text),
        Err(error) => Err(wrong(&error)),
    }
}

/// Reads a file of JSON.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    serde_json::from_str(&read_text(file)?)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
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

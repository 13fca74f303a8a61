//! The program of a server: found by the user's own `PATH`, whatever variables and folder a file gives it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::exit::{Exit, Failure};

/// Name of the variable that programs are found by.
const PATH: &str = "PATH";

/// Returns the command that starts a server.
pub(super) fn command(
    words: &[String],
    env: Vec<(String, String)>,
    cwd: Option<PathBuf>,
) -> Result<Command, Failure> {
    let (program, args) = words.split_first().ok_or_else(|| Failure::usage("the command is empty"))?;
    let has_path = env.iter().any(|(name, _)| name.eq_ignore_ascii_case(PATH));
    // The system would look into the `PATH` and the folder that the program is given, and a file may choose these.
    let mut command = if is_name(program) && (has_path || cwd.is_some()) {
        let missing = || {
            let why = format!(
                "cannot start `{program}`: it is not on your PATH, which counts, and not that of a file"
            );
            Failure::new(Exit::Transport, why)
        };
        Command::new(own(program).ok_or_else(missing)?)
    } else {
        Command::new(program)
    };
    command.args(args).envs(env);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    Ok(command)
}

/// Returns whether a program is given by its name, and not by a path.
fn is_name(program: &str) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(program))
}

/// Finds a program that is given by its name on the user's own `PATH`.
fn own(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os(PATH)?;
    let named = |folder: PathBuf| {
        let path = std::path::absolute(folder.join(program)).ok()?;
        let suffixed = path.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX));
        [path, suffixed].into_iter().find(|path| is_executable(path))
    };
    std::env::split_paths(&folders).find_map(named)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        #[cfg(unix)]
        let may_run = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
        #[cfg(not(unix))]
        let may_run = true;
        found.is_file() && may_run
    })
}

//! The generator's own place on the machine: its core and its limit on open files.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
};

use crate::Fail;

/// Set in the environment once the generator has started itself again.
const ENTERED: &str = "ROUNDTRIP_LOAD_ENTERED";

const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";

/// Starts the generator again on its own core, with as many open files as the system grants it. Both are for a
/// shell to arrange: setting them from within needs unsafe code. The servers inherit the limit.
pub(crate) fn enter() -> Result<(), Fail> {
    if env::var_os(ENTERED).is_some() {
        return Ok(());
    }
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -n "$(ulimit -Hn)"; exec "$@""#, "sh"]).env(ENTERED, "1");
    if can_pin() {
        command.args(["taskset", "-c", LOAD_CORE]);
    }
    let error = command.arg(env::current_exe()?).args(env::args_os().skip(1)).exec();
    Err(format!("cannot start the generator again through sh: {error}").into())
}

/// Returns the prefix of a server's command that puts it on its own core.
pub(crate) fn server_prefix() -> &'static [&'static str] {
    if can_pin() { &["taskset", "-c", SERVER_CORE] } else { &[] }
}

fn can_pin() -> bool {
    [SERVER_CORE, LOAD_CORE].iter().all(|core| succeeds("taskset", &["-c", core, "true"]))
}

/// Returns whether the command can be run and succeeds.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns how many files a process may have open.
pub(crate) fn open_files() -> Result<usize, Fail> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft =
        line.and_then(|line| line.split_whitespace().nth(3)).ok_or("no limit on open files is listed")?;
    Ok(if soft == "unlimited" { usize::MAX } else { soft.parse()? })
}

/// Describes the machine in one sentence.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    let cores = cores.max(thread::available_parallelism().map_or(1, usize::from));
    let placed = if can_pin() {
        format!("server on core {SERVER_CORE}, load on core {LOAD_CORE}")
    } else {
        "server and load not pinned to cores".to_owned()
    };
    format!("{model}, {cores} cores; {placed}")
}

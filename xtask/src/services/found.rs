//! Finding programs of servers: on the path, where Debian puts them, or by installing Debian's packages.

use std::path::PathBuf;
use std::process::Command;

/// Folder of PostgreSQL's programs.
pub(super) fn postgres() -> Option<PathBuf> {
    let find = || folder_with("initdb").or_else(debian_postgres);
    find().or_else(|| install("postgresql").then(find).flatten())
}

/// Redis's server.
pub(super) fn redis() -> Option<PathBuf> {
    let find = || Some(folder_with("redis-server")?.join("redis-server"));
    find().or_else(|| install("redis-server").then(find).flatten())
}

/// nginx. Debian puts it where the path of users does not lead.
pub(super) fn nginx() -> Option<PathBuf> {
    let debian = || Some(PathBuf::from("/usr/sbin/nginx")).filter(|program| program.is_file());
    let find = || folder_with("nginx").map(|folder| folder.join("nginx")).or_else(debian);
    find().or_else(|| install("nginx").then(find).flatten())
}

/// Returns whether a shell is on the path, where its package puts it.
pub(super) fn shell(name: &str) -> bool {
    folder_with(name).is_some() || (install(name) && folder_with(name).is_some())
}

/// The folder of the path that has a program, with links followed: its companions may not be linked.
fn folder_with(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())?;
    Some(found.canonicalize().ok()?.parent()?.to_path_buf())
}

/// The latest of the versions in /usr/lib/postgresql.
fn debian_postgres() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let version = |name: &std::ffi::OsStr| name.to_str().and_then(|name| name.parse::<u32>().ok());
    let bins = versions.filter_map(|entry| Some((version(&entry.file_name())?, entry.path().join("bin"))));
    bins.filter(|(_, bin)| bin.join("initdb").is_file()).max().map(|(_, bin)| bin)
}

/// Installs a package of Debian, if this is Debian and we may.
fn install(package: &str) -> bool {
    if !super::server::is_root() || folder_with("apt-get").is_none() {
        return false;
    }
    println!("installing {package}");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        // At run level 1 no service is started by being installed: ours are our own.
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        command.stdout(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    apt(&install) || (apt(&["update"]) && apt(&install))
}

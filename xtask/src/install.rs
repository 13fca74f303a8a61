//! Installing what a run needs, into the target folder and nowhere else. Every installation leaves a stamp
//! that says what it holds, so it happens once and again when the pins change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(600);
/// The conformance suite imports `fs.globSync`, which older releases do not have.
const NODE_MAJOR: u32 = 22;

/// Runs `work` in an empty folder unless the folder's stamp already says `what`.
fn once(folder: &Path, what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == what) {
        return Ok(());
    }
    eprintln!("installing into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    work()?;
    fs::write(&stamp, what).with_context(|| format!("writing {}", stamp.display()))
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("npm");
    command.args(arguments).args(["--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
    process::quietly(&mut command, &folder.join("npm.log"), LIMIT).context("npm is needed, and the network")
}

/// One package from npm at an exact version.
pub(crate) fn npm_package(folder: &Path, package: &str) -> Result<()> {
    once(folder, package, || {
        fs::write(folder.join("package.json"), "{\"private\":true}\n")?;
        npm(folder, &["install", package])
    })
}

/// The packages that a checked-in `package.json` and lock file pin.
pub(crate) fn npm_locked(folder: &Path, pins: &Path) -> Result<()> {
    let read = |name: &str| fs::read_to_string(pins.join(name)).with_context(|| format!("reading {name}"));
    let (manifest, lock) = (read("package.json")?, read("package-lock.json")?);
    once(folder, &format!("{manifest}{lock}"), || {
        fs::write(folder.join("package.json"), &manifest)?;
        fs::write(folder.join("package-lock.json"), &lock)?;
        npm(folder, &["ci"])
    })
}

/// A Node that is new enough: the machine's own, or one from npm.
pub(crate) fn node(workspace: &Workspace) -> Result<PathBuf> {
    if let Ok(said) = Command::new("node").arg("--version").output()
        && node_major(&String::from_utf8_lossy(&said.stdout)).is_some_and(|major| major >= NODE_MAJOR)
    {
        return Ok("node".into());
    }
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let folder = workspace.interop().join("node");
    let package = format!("node-{os}-{arch}");
    npm_package(&folder, &format!("{package}@{NODE_MAJOR}"))?;
    let bin = folder.join("node_modules").join(package).join("bin").join("node");
    anyhow::ensure!(bin.exists(), "the npm package holds no {}", bin.display());
    Ok(bin)
}

fn node_major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// A Python with the packages that a requirements file pins.
#[derive(Debug)]
pub(crate) struct Python {
    program: PathBuf,
    /// Where the packages are, when there is no environment of their own around the program.
    packages: Option<PathBuf>,
}

impl Python {
    pub(crate) fn with(folder: &Path, requirements: &Path) -> Result<Self> {
        let pins = fs::read_to_string(requirements)
            .with_context(|| format!("reading {}", requirements.display()))?;
        once(folder, &pins, || install_python(folder, requirements))?;
        let own = folder.join("venv/bin/python");
        Ok(if own.exists() {
            Self { program: own, packages: None }
        } else {
            Self { program: "python3".into(), packages: Some(folder.join("packages")) }
        })
    }

    /// Returns the Python of this machine, with its standard library.
    pub(crate) fn bare() -> Self {
        Self { program: "python3".into(), packages: None }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-B"); // no bytecode beside the scripts
        if let Some(packages) = &self.packages {
            command.env("PYTHONPATH", packages);
        }
        command
    }
}

fn install_python(folder: &Path, requirements: &Path) -> Result<()> {
    let venv = folder.join("venv");
    let log = folder.join("pip.log");
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&venv);
    let made = process::log(&mut make, &log, LIMIT).context("python3 is needed")?.is_success();
    let mut pip;
    if made {
        pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install"]);
    } else {
        // Some distributions ship Python without `ensurepip`: then a plain folder has to do.
        let _ = fs::remove_dir_all(&venv);
        pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--target"]).arg(folder.join("packages"));
    }
    pip.args(["--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    process::quietly(&mut pip, &log, LIMIT).context("pip is needed (or python3-venv), and the network")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version_of_node() {
        assert_eq!(node_major("v22.23.3\n"), Some(22));
        assert_eq!(node_major("v8"), Some(8));
        assert_eq!(node_major(""), None);
    }

    #[test]
    fn installs_once_and_again_when_the_pins_change() {
        let folder = std::env::temp_dir().join(format!("xtask-once-{}", std::process::id()));
        let mut runs = 0;
        for pins in ["a", "a", "b", "b"] {
            once(&folder, pins, || {
                runs += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(runs, 2);
        assert!(once(&folder, "c", || anyhow::bail!("no network")).is_err());
        once(&folder, "c", || {
            runs += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(runs, 3, "a failed installation is not taken for a finished one");
        fs::remove_dir_all(folder).unwrap();
    }
}

//! Where things are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// The root of the repository and cargo's target folder.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// True if everything is run: all packages are built together and with all features, so that no crate is built twice.
    pub(crate) is_whole: bool,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
        // Asked, not assumed: a configuration file or the environment may have moved it.
        let mut command = Command::new(cargo());
        command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(root);
        let metadata: serde_json::Value = serde_json::from_str(&process::output(&mut command)?)?;
        let target =
            metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
        Ok(Self { root: root.to_path_buf(), target: target.into(), is_whole: false })
    }

    /// Everything that is installed or left behind by conformance and interoperability runs.
    pub(crate) fn interop(&self) -> PathBuf {
        self.target.join("interop")
    }

    /// A cargo invocation at the root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// A cargo invocation at the root, on all packages.
    pub(crate) fn cargo_on_all(&self, arguments: &[&str]) -> Command {
        let mut command = self.cargo(arguments);
        command.arg("--workspace").args(self.is_whole.then_some("--all-features"));
        command
    }

    /// Builds the programs of a package, and returns their folder.
    pub(crate) fn build_programs(&self, package: &str) -> Result<PathBuf> {
        let mut build = if self.is_whole {
            self.cargo_on_all(&["build", "--quiet", "--bins", "--examples"])
        } else {
            self.cargo(&["build", "--quiet", "--bins", "--package", package])
        };
        anyhow::ensure!(process::show(&mut build)?, "the programs of {package} do not build");
        Ok(self.target.join("debug"))
    }
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

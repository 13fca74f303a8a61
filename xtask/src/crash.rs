//! `cargo xtask crash`: the crash test of tasks in full, on SQLite and on PostgreSQL.

use anyhow::{Result, bail};

use crate::process;
use crate::services::Services;
use crate::workspace::Workspace;

/// Variable that makes the crash test long.
const FULL: &str = "ROUNDTRIP_CRASH_FULL";
/// Variable with the seed of its random choices.
const SEED: &str = "ROUNDTRIP_CRASH_SEED";

/// Runs the test, which prints what it counted and ends by itself; false when it fails, or when PostgreSQL is missing.
pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let seed = match arguments {
        [] => None,
        ["--seed", seed] => Some(seed),
        other => bail!("wanted nothing or --seed and a number, not {other:?}"),
    };
    let services = Services::start()?;
    let test = ["test", "--package", "roundtrip-store", "--all-features", "--test", "crash"];
    let mut command = workspace.cargo(&test);
    command.args(["--", "--nocapture", "--test-threads=1"]).env(FULL, "1");
    command.envs(seed.map(|seed| (SEED, seed)));
    Ok(process::show(services.set(&mut command))? && services.has("PostgreSQL"))
}

//! `cargo xtask weight`: crates, build time and size of a hello server, beside the same server with rmcp.
//!
//! Each server is a project of its own below `target/weight`, built anew with the same profile. Build time is user CPU
//! time, which depends less on what else the machine does than the clock.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::workspace::Workspace;

const MANIFEST: &str = r#"[package]
name = "hello"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
schemars = "1"
serde = { version = "1", features = ["derive"] }

[profile.release]
lto = "thin"
codegen-units = 1
strip = true
"#;

/// A hello server: how its row is named, its dependencies, its source, and the lock file it starts from.
struct Hello {
    name: &'static str,
    dependencies: String,
    source: &'static str,
    lock: PathBuf,
}

/// Figures of one server.
struct Figures {
    crates: usize,
    seconds: f64,
    bytes: u64,
}

pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let rounds: usize = match arguments {
        [] => 1,
        [rounds] => rounds.parse().context("wanted a number of rounds")?,
        other => bail!("wanted a number of rounds, not {other:?}"),
    };
    println!("| round | server | crates | user CPU time of a release build, s | stripped, MiB |");
    println!("|------:|--------|-------:|------------------------------------:|--------------:|");
    for round in 1..=rounds {
        for hello in hellos(workspace) {
            let Figures { crates, seconds, bytes } = hello.weigh(&workspace.target.join("weight"))?;
            let size = bytes as f64 / f64::from(1 << 20);
            println!("| {round} | {} | {crates} | {seconds:.0} | {size:.2} |", hello.name);
        }
    }
    Ok(true)
}

fn hellos(workspace: &Workspace) -> [Hello; 4] {
    let ours = |name, rest: &str| Hello {
        name,
        dependencies: format!(
            "roundtrip = {{ path = {:?}{rest} }}\n\
             tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n",
            workspace.root.join("crates/roundtrip")
        ),
        source: include_str!("roundtrip.rs"),
        lock: workspace.root.join("Cargo.lock"),
    };
    [
        ours("roundtrip, no features", ", default-features = false"),
        ours("roundtrip, a server", ", default-features = false, features = [\"legacy\", \"validation\"]"),
        ours("roundtrip, default", ""),
        Hello {
            name: "rmcp",
            dependencies: "axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"tokio\"] }\n\
                 rmcp = { version = \"=3.8.0\", features = [\"transport-io\", \"transport-streamable-http-server\"] }\n\
                 tokio = { version = \"1\", features = [\"macros\", \"net\", \"rt-multi-thread\"] }\n"
                .into(),
            source: include_str!("rmcp.rs"),
            lock: workspace.root.join("benches/peers/rmcp/Cargo.lock"),
        },
    ]
}

impl Hello {
    /// Writes the project, builds it in an empty target folder, and measures it.
    fn weigh(&self, folder: &Path) -> Result<Figures> {
        let project = folder.join(self.name.replace([',', ' '], "-"));
        if project.exists() {
            fs::remove_dir_all(&project).with_context(|| format!("emptying {}", project.display()))?;
        }
        fs::create_dir_all(project.join("src"))?;
        let dependencies = format!("[dependencies]\n{}", self.dependencies);
        fs::write(project.join("Cargo.toml"), MANIFEST.replace("[dependencies]\n", &dependencies))?;
        fs::write(project.join("src/main.rs"), self.source)?;
        fs::copy(&self.lock, project.join("Cargo.lock"))?;
        Ok(Figures {
            crates: crates(&project)?,
            seconds: build(&project)?,
            bytes: fs::metadata(project.join("target/release/hello"))?.len(),
        })
    }
}

/// Counts the crates that are compiled, the server itself and those of build scripts and macros among them.
fn crates(project: &Path) -> Result<usize> {
    let said =
        output(project, "cargo", &["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])?;
    // A line is a name and a version, and perhaps a remark.
    let names: BTreeSet<_> = said.lines().map(|line| line.split(" (").next().unwrap_or(line)).collect();
    Ok(names.len())
}

/// Builds with two jobs and returns the user CPU time in seconds, as the shell counts it.
fn build(project: &Path) -> Result<f64> {
    output(project, "cargo", &["fetch"])?;
    let said = output(project, "sh", &["-c", "cargo build --release --quiet --jobs 2 && times"])?;
    let children = said.lines().last().and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    seconds(children).with_context(|| format!("the shell's times are no times: {said}"))
}

/// Reads the shell's way of writing a time: `3m12.45s`.
fn seconds(time: &str) -> Option<f64> {
    let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

/// Runs a program in a project, with a target folder of its own, and returns its output.
fn output(project: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(project);
    command.env("CARGO_TARGET_DIR", project.join("target")).env("CARGO_INCREMENTAL", "0");
    process::output(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_times_of_a_shell() {
        assert_eq!(seconds("3m12.450s"), Some(192.45));
        assert_eq!(seconds("0m0.00s"), Some(0.0));
        assert_eq!(seconds("12.5"), None);
    }
}

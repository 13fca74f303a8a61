//! `cargo xtask spec`: SPEC.md, the list of rules and of the tests that show them, written from the doc
//! comments of the tests themselves.

mod render;
mod scan;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;

const FILE: &str = "SPEC.md";

pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    match arguments {
        [] => write(workspace),
        ["--check"] => check(workspace),
        other => bail!("wanted nothing or --check, not {other:?}"),
    }
}

fn write(workspace: &Workspace) -> Result<bool> {
    let path = workspace.root.join(FILE);
    fs::write(&path, generate(&workspace.root)?).with_context(|| format!("writing {FILE}"))?;
    println!("wrote {FILE}");
    Ok(true)
}

/// Whether SPEC.md says what the tests say.
pub(crate) fn check(workspace: &Workspace) -> Result<bool> {
    let wanted = generate(&workspace.root)?;
    let found = fs::read_to_string(workspace.root.join(FILE)).unwrap_or_default();
    let fresh = found == wanted;
    if fresh {
        println!("{FILE} is fresh");
    } else {
        println!("{FILE} is stale; this mends it: cargo xtask spec");
    }
    Ok(fresh)
}

fn generate(root: &Path) -> Result<String> {
    let mut rules = Vec::new();
    for path in sources(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        rules.extend(scan::rules(&text, &shown));
    }
    render::markdown(&rules)
}

/// Every file whose doc comments count, in a fixed order.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("interop"), root.join("tests"), root.join("xtask/src")];
    if let Ok(crates) = fs::read_dir(root.join("crates")) {
        for entry in crates {
            let path = entry?.path();
            folders.extend([path.join("tests"), path.join("src")]);
        }
    }
    let mut files = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        rust_files(folder, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let installed = ["target", "node_modules"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !installed {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

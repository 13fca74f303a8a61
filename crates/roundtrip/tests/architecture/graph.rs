//! Module graph of a folder of sources, read from their imports.
//!
//! A module uses another if it imports something of it, or names a path into it, also inside a macro. Re-exports are followed to
//! the module that defines the name, so that a facade hides nothing; a re-export itself counts as a use only if the module
//! that makes it uses the name too. Code for tests alone does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tokens::{after_attribute, at, closing, is_ident, tokens};

/// Most re-exports that are followed from one name: more would be a circle.
const MAX_STEPS: usize = 8;

/// Modules, and those that each of them uses.
pub(crate) type Edges = BTreeMap<String, BTreeSet<String>>;

/// Modules by their path below `src`: `server::round::state`.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<String, Source>);

#[derive(Default)]
struct Source {
    imports: Vec<Import>,
    /// Paths in code, each with the module it stands in.
    paths: Vec<(Vec<String>, Vec<String>)>,
    /// Names in code, outside of imports.
    names: BTreeSet<String>,
}

struct Import {
    /// The module that it stands in.
    base: Vec<String>,
    path: Vec<String>,
    name: String,
    public: bool,
}

impl Modules {
    /// Reads a source file by its path below `src`. Files that hold tests are left out.
    pub(crate) fn read(&mut self, file: &Path, text: &str) {
        let mut module: Vec<String> =
            file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.iter().any(|part| part == "tests") {
            return;
        }
        module.pop_if(|last| last == "mod");
        let tokens = tokens(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let source = self.0.entry(module.join("::")).or_default();
        scan(&tokens, &module, source);
    }

    /// Returns the modules that each module uses.
    pub(crate) fn edges(&self) -> Edges {
        self.0.iter().map(|(name, source)| (name.clone(), self.used_by(name, source))).collect()
    }

    fn used_by(&self, name: &str, source: &Source) -> BTreeSet<String> {
        let imports =
            source.imports.iter().filter(|import| !import.public || source.names.contains(&import.name));
        let imports = imports.map(|import| (&import.base, &import.path));
        let paths = source.paths.iter().map(|(base, path)| (base, path));
        let used = imports
            .chain(paths)
            .filter_map(|(base, path)| self.resolve(&self.absolute(base, path)?, MAX_STEPS));
        used.filter(|used| used != name).collect()
    }

    /// Returns a path from the root of the crate, or `None` if it leads out of the crate.
    fn absolute(&self, base: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([base, rest].concat()),
            "super" => {
                let up = &base[..base.len().checked_sub(1)?];
                match rest.first() {
                    Some(again) if again == "super" => self.absolute(up, rest),
                    _ => Some([up, rest].concat()),
                }
            }
            child => {
                let module = [base, &[child.to_owned()]].concat();
                self.0.contains_key(&module.join("::")).then(|| [base, path].concat())
            }
        }
    }

    /// Returns the module that defines what a path names, through re-exports.
    fn resolve(&self, path: &[String], steps: usize) -> Option<String> {
        let (length, module) = (1..=path.len()).rev().find_map(|length| {
            let name = path[..length].join("::");
            self.0.contains_key(&name).then_some((length, name))
        })?;
        let import = path
            .get(length)
            .and_then(|name| self.0[&module].imports.iter().find(|import| import.name == *name));
        match import {
            Some(import) if steps > 0 => {
                let target = self.absolute(&import.base, &import.path)?;
                self.resolve(&[&target, &path[length + 1..]].concat(), steps - 1)
            }
            _ => Some(module),
        }
    }
}

/// Returns the graph of the folders and files directly below a room.
pub(crate) fn storeys(room: &str, edges: &Edges) -> Edges {
    let storey = |module: &str| {
        let below = module.strip_prefix(room)?.strip_prefix("::")?;
        below.split("::").next().map(str::to_owned)
    };
    let mut storeys = Edges::new();
    for (from, used) in edges {
        let Some(from) = storey(from) else { continue };
        let to = storeys.entry(from.clone()).or_default();
        to.extend(used.iter().filter_map(|used| storey(used)).filter(|to| *to != from));
    }
    storeys
}

/// Returns the sets of modules that use each other, directly or not.
pub(crate) fn cycles(edges: &Edges) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<String>> =
        edges.keys().map(|module| (module, reached_from(module, edges))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, reaches) in &reached {
        let knot: BTreeSet<String> = reaches
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)))
            .cloned()
            .collect();
        if knot.len() > 1 && !found.contains(&knot) {
            found.push(knot);
        }
    }
    found
}

fn reached_from(module: &str, edges: &Edges) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![module];
    while let Some(module) = next.pop() {
        for used in edges.get(module).into_iter().flatten() {
            if reached.insert(used.clone()) {
                next.push(used);
            }
        }
    }
    reached
}

/// Collects imports, paths and names of a module, inline modules included.
fn scan(tokens: &[String], base: &[String], source: &mut Source) {
    let mut index = 0;
    while index < tokens.len() {
        index = match (at(tokens, index), at(tokens, index + 1), at(tokens, index + 2)) {
            ("#", "[", _) => after_attribute(tokens, index),
            ("use", next, _) if next != "<" => {
                let public = is_public(&tokens[..index]);
                let mut imports = Vec::new();
                let end = import(tokens, index + 1, Vec::new(), &mut imports);
                source.imports.extend(imports.into_iter().map(|(path, name)| Import {
                    base: base.to_vec(),
                    path,
                    name,
                    public,
                }));
                end
            }
            ("mod", name, "{") => {
                let end = closing(tokens, index + 2);
                scan(&tokens[index + 3..end], &[base, &[name.to_owned()]].concat(), source);
                end + 1
            }
            (name, "::", _) if is_ident(name) => {
                let mut path = vec![name.to_owned()];
                let mut end = index + 1;
                while at(tokens, end) == "::" && is_ident(at(tokens, end + 1)) {
                    path.push(tokens[end + 1].clone());
                    end += 2;
                }
                source.names.extend(path.iter().cloned());
                source.paths.push((base.to_vec(), path));
                end
            }
            (name, ..) => {
                source.names.insert(name.to_owned());
                index + 1
            }
        };
    }
}

/// Returns whether the tokens before an item end with a visibility.
fn is_public(before: &[String]) -> bool {
    match before {
        [.., word] if word == "pub" => true,
        [.., end] if end == ")" => {
            let open = before.iter().rposition(|token| token == "(").unwrap_or_default();
            open > 0 && before[open - 1] == "pub"
        }
        _ => false,
    }
}

/// Reads a tree of imports, and returns the index behind it.
fn import(
    tokens: &[String],
    mut index: usize,
    mut path: Vec<String>,
    out: &mut Vec<(Vec<String>, String)>,
) -> usize {
    loop {
        match (at(tokens, index), at(tokens, index + 1)) {
            ("{", _) => {
                let end = closing(tokens, index);
                index += 1;
                while index < end {
                    index = import(tokens, index, path.clone(), out);
                    index += usize::from(at(tokens, index) == ",");
                }
                return end + 1;
            }
            (name, "::") => {
                path.push(name.to_owned());
                index += 2;
            }
            ("*", _) => {
                out.push((path, "*".to_owned()));
                return index + 1;
            }
            (last, next) => {
                if last != "self" || path.is_empty() {
                    path.push(last.to_owned());
                }
                let name =
                    if next == "as" { at(tokens, index + 2) } else { path.last().map_or("", String::as_str) };
                let name = name.to_owned();
                out.push((path, name));
                return index + if next == "as" { 3 } else { 1 };
            }
        }
    }
}

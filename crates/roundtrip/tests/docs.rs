//! Code in README.md and the manual is complete where it is read: a code host shows every line that is compiled.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and every chapter of the manual.
fn pages() -> Vec<PathBuf> {
    let manual = root().join("docs/manual");
    let entries = fs::read_dir(&manual).expect("the manual");
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.insert(0, root().join("README.md"));
    pages
}

fn text_of(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// A fenced block of code.
struct Block<'a> {
    /// Number of its first line, counted from 1.
    line: usize,
    /// Words after the fence: the language, and attributes of rustdoc.
    tags: Vec<&'a str>,
    lines: Vec<&'a str>,
}

impl Block<'_> {
    fn is_rust(&self) -> bool {
        self.tags[0] == "rust"
    }
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(tags), None) => {
                let tags = tags.split(',').map(str::trim).collect();
                open = Some(Block { line: number + 2, tags, lines: Vec::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.lines.push(line),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// Beginnings of lines that stand at the left margin of a module. Anything else there is a statement, which only
/// rustdoc accepts.
const ITEMS: &[&str] = &[
    "//",
    "#[",
    "#![",
    "use ",
    "pub ",
    "fn ",
    "async fn ",
    "struct ",
    "enum ",
    "trait ",
    "impl",
    "const ",
    "static ",
    "type ",
    "mod ",
    "}",
    ")",
    "where",
];

/// Calls that a doc test cannot make: they wait for a client, or for a server that is not there.
const OUTSIDE: &[&str] = &["serve_http", "serve_stdio", "axum::serve", "Client::http", "Client::stdio"];

/// Name of the example that an excerpt is taken from: its first line is `// examples/NAME.rs`.
fn example<'a>(block: &Block<'a>) -> Option<&'a str> {
    block.lines.first()?.strip_prefix("// examples/")?.strip_suffix(".rs")
}

/// Problem of a block that a reader could not copy and compile as it stands.
fn problem(block: &Block<'_>) -> Option<String> {
    let tagged = |tag| block.tags.contains(&tag);
    if block.tags[0].is_empty() {
        return Some("has no language, so that rustdoc takes it for Rust".into());
    }
    if !block.is_rust() {
        return None;
    }
    if let Some(hidden) = block.lines.iter().find(|line| **line == "#" || line.trim_start().starts_with("# "))
    {
        return Some(format!("hides `{hidden}` from rustdoc's readers alone"));
    }
    if let Some(name) = example(block) {
        return (!tagged("ignore"))
            .then(|| format!("is an excerpt of `{name}`, and compiled without the rest"));
    }
    if tagged("ignore") {
        return Some("is not compiled, and not an excerpt of an example".into());
    }
    let statement = block.lines.iter().find(|line| {
        !line.is_empty() && !line.starts_with(' ') && !ITEMS.iter().any(|item| line.starts_with(item))
    });
    if let Some(statement) = statement {
        return Some(format!("has a statement outside of any function: `{statement}`"));
    }
    let code = block.lines.join("\n");
    let runs_outside = code.contains("fn main()") && OUTSIDE.iter().any(|call| code.contains(call));
    match (tagged("no_run"), runs_outside) {
        (true, false) => Some("could run, and is marked `no_run`".into()),
        (false, true) => Some("calls what a test cannot reach, and is not marked `no_run`".into()),
        _ => None,
    }
}

/// Whether the lines occur in a text, in order and without others in between, at any depth of indentation.
fn occurs(lines: &[&str], text: &str) -> bool {
    let shared = |line: &&str| line.len() - line.trim_start().len();
    let text: Vec<&str> = text.lines().collect();
    text.windows(lines.len()).any(|window| {
        let depth = window.iter().filter(|line| !line.is_empty()).map(shared).min().unwrap_or_default();
        window.iter().zip(lines).all(|(there, here)| there.get(depth..).unwrap_or_default() == *here)
    })
}

#[test]
fn every_block_compiles_as_it_is_shown() {
    let mut problems = Vec::new();
    let mut seen = 0;
    for page in pages() {
        for block in blocks(&text_of(&page)) {
            seen += 1;
            if let Some(problem) = problem(&block) {
                problems.push(format!("{}:{}: {problem}", page.display(), block.line));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(seen > 30, "the code is gone: {seen} blocks");
}

#[test]
fn excerpts_are_in_their_examples() {
    for page in pages() {
        for block in blocks(&text_of(&page)) {
            let Some(name) = block.is_rust().then(|| example(&block)).flatten() else { continue };
            let file = root().join("crates/roundtrip/examples").join(name).with_extension("rs");
            let found = occurs(&block.lines[1..], &text_of(&file));
            assert!(found, "{}:{}: not in {}", page.display(), block.line, file.display());
        }
    }
}

#[test]
fn every_page_with_code_is_a_doc_test() {
    let library = text_of(&root().join("crates/roundtrip/src/lib.rs"));
    for page in pages() {
        let name = page.file_name().expect("a name").to_string_lossy().into_owned();
        let has_code = blocks(&text_of(&page)).iter().any(Block::is_rust);
        let below = if page.starts_with(root().join("docs")) { "docs/manual/" } else { "" };
        let included = library.contains(&format!("include_str!(\"../../../{below}{name}\")"));
        assert!(included || !has_code, "{}: not among the doc tests of lib.rs", page.display());
    }
}

#[test]
fn links_lead_to_files_that_exist() {
    let mut followed = 0;
    for page in pages() {
        let text = text_of(&page);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or_default();
            let path = page.parent().expect("a folder").join(file);
            assert!(path.exists(), "{}: `{target}` leads nowhere", page.display());
            followed += 1;
        }
    }
    assert!(followed > 20, "the links are gone: {followed}");
}

/// The checks above find what they look for.
#[test]
fn incomplete_blocks_are_found() {
    let found = |text: &str| blocks(text).first().and_then(problem).unwrap_or_default();
    for (text, part) in [
        ("```\ncode\n```", "no language"),
        ("```rust\n# use a::B;\nfn f() {}\n```", "hides `# use a::B;`"),
        ("```rust\nfn f() {\n    #\n}\n```", ""),
        ("```rust\n#\nfn f() {}\n```", "hides `#`"),
        ("```rust\nlet a = 1;\n```", "outside of any function: `let a = 1;`"),
        ("```rust,ignore\nfn f() {}\n```", "not an excerpt"),
        ("```rust,no_run\nfn main() {}\n```", "could run"),
        ("```rust,no_run\nfn f() { Client::http(\"\"); }\n```", "could run"),
        ("```rust\nfn main() { Client::http(\"\"); }\n```", "is not marked"),
        ("```rust\n// examples/a.rs\nfn f() {}\n```", "compiled without the rest"),
        ("```rust,ignore\n// examples/a.rs\nlet a = 1;\n```", ""),
        ("```rust\n#[derive(Form)]\nstruct A {\n    a: u8,\n}\n```", ""),
        ("```sh\n# a comment\n```", ""),
    ] {
        let problem = found(text);
        assert!(problem.contains(part) && problem.is_empty() == part.is_empty(), "{text}: {problem}");
    }
    assert!(occurs(&["a {", "    b", "}"], "mod m {\n    a {\n        b\n    }\n}\n"));
    assert!(!occurs(&["a {", "}"], "a {\n    b\n}\n"));
}

//! Code in README.md and the manual is complete where it is read, as a code host shows it, and together with the documentation
//! of items it shows every builder method in use.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[path = "docs/api.rs"]
mod api;
#[path = "docs/calls.rs"]
mod calls;
#[path = "docs/limits.rs"]
mod limits;
#[path = "docs/links.rs"]
mod links;
#[path = "common/tokens.rs"]
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use api::{Api, Source};
use calls::calls;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and every page of the manual.
fn pages() -> Vec<PathBuf> {
    let mut pages = sources(&root().join("docs/manual"));
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

    /// Returns whether rustdoc compiles it, for a chapter or for a doc comment.
    fn is_compiled(&self) -> bool {
        let compiled = ["", "rust", "no_run", "should_panic"];
        self.tags.iter().all(|tag| compiled.contains(tag))
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
    if let Some(hidden) =
        block.lines.iter().find(|line| line.trim() == "#" || line.trim_start().starts_with("# "))
    {
        return Some(format!("has a line that only rustdoc hides: `{hidden}`"));
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

/// Returns whether the lines occur in a text, in order and without others in between, at any depth of indentation.
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
    let library = ["crates/roundtrip", "crates/roundtrip-store", "tests/telemetry"]
        .map(|package| text_of(&root().join(package).join("src/lib.rs")));
    let library = library.join("\n");
    for page in pages() {
        let name = page.strip_prefix(root()).expect("a page of the repository").display();
        let has_code = blocks(&text_of(&page)).iter().any(Block::is_rust);
        let included = library.contains(&format!("include_str!(\"../../../{name}\")"));
        assert!(included || !has_code, "{}: not among the doc tests of a lib.rs", page.display());
    }
}

/// The oldest compiler that README.md promises is the one that Cargo.toml demands.
#[test]
fn the_readme_names_the_oldest_compiler() {
    let manifest = text_of(&root().join("Cargo.toml"));
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).expect("a version");
    let promise = format!("Rust {} or newer", version.trim_matches('"'));
    assert!(text_of(&root().join("README.md")).contains(&promise), "README.md does not say: {promise}");
}

/// Every source file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Returns whether an item of this name belongs to sampling, roots or logging.
fn is_deprecated(name: &str) -> bool {
    let parts = ["Sampl", "sampl", "Root", "roots", "Logging", "CreateMessage", "ToolChoice", "ModelHint"];
    let whole = ["Log", "logging", "on_log", "log_level", "LOG_LEVEL", "ModelPreferences", "IncludeContext"];
    parts.iter().any(|part| name.contains(part)) || whole.contains(&name)
}

/// Public items of a source that belong to a deprecated feature, each with whether its documentation, or that of the type
/// around it, says so.
fn deprecated_items(text: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let (mut says_so, mut around_says_so) = (false, false);
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with("///") || code.starts_with("#[") {
            says_so |= code.contains("SEP-2577");
            continue;
        }
        if let Some(item) = code.strip_prefix("pub ") {
            let kinds = ["async ", "fn ", "struct ", "enum ", "trait ", "const ", "type "];
            let name = kinds.iter().fold(item, |item, kind| item.strip_prefix(kind).unwrap_or(item));
            let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if is_deprecated(name) {
                found.push((name, says_so || around_says_so));
            }
        }
        if !line.starts_with(' ') && !line.is_empty() {
            around_says_so = says_so;
        }
        says_so = false;
    }
    found
}

/// Sampling, roots and logging are deprecated by the specification (SEP-2577), and every item of theirs says so.
#[test]
fn items_of_deprecated_features_say_so() {
    let mut items = 0;
    for krate in ["roundtrip", "roundtrip-core"] {
        for file in sources(&root().join("crates").join(krate).join("src")) {
            for (name, says_so) in deprecated_items(&text_of(&file)) {
                assert!(says_so, "{}: `{name}` does not name SEP-2577", file.display());
                items += 1;
            }
        }
    }
    assert!(items > 25, "the items are gone: {items}");
}

/// Doc comments of a source, as rustdoc reads them: without the marks of comments and of hidden lines.
fn doc_comments(source: &str) -> String {
    let lines = source.lines().map(|line| {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).unwrap_or_default();
        let doc = doc.strip_prefix(' ').unwrap_or(doc);
        doc.strip_prefix("# ").unwrap_or(if doc == "#" { "" } else { doc })
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Sources of the SDK, with what users see of each.
fn sdk() -> Vec<Source> {
    let mut found = Vec::new();
    for krate in ["roundtrip", "roundtrip-core"] {
        let src = root().join("crates").join(krate).join("src");
        for file in sources(&src).iter().filter(|file| !file.ends_with("tests.rs")) {
            let below = file.strip_prefix(&src).expect("a file below src");
            let is_open = krate == "roundtrip-core" && below.starts_with("wire");
            let reexported = ["form", "seal", "wire"].iter().any(|module| below.starts_with(module));
            found.push(Source {
                text: text_of(file),
                is_public: krate == "roundtrip" || reexported,
                is_open,
            });
        }
    }
    found
}

/// Returns the builder methods that no compiled block of these texts calls.
fn uncalled<'a>(sources: &[Source], texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let api = Api::read(sources);
    let mut called = BTreeSet::new();
    for text in texts {
        for block in blocks(text).iter().filter(|block| block.is_compiled()) {
            called.extend(calls(&api, &block.lines.join("\n")));
        }
    }
    let mut builders = api.builders();
    builders.retain(|(owner, name)| !api.is_called(owner, name, &called));
    builders.iter().map(|(owner, name)| format!("{owner}::{name}")).collect()
}

/// Readers find every builder method in use: in README.md, in the manual, or in the documentation of an item.
#[test]
fn every_builder_method_is_shown_in_use() {
    let sources = sdk();
    let comments: Vec<String> = sources.iter().map(|source| doc_comments(&source.text)).collect();
    let pages: Vec<String> = pages().iter().map(|page| text_of(page)).collect();
    let uncalled = uncalled(&sources, pages.iter().chain(&comments).map(String::as_str));
    assert!(uncalled.is_empty(), "no compiled block calls these:\n{uncalled:#?}");
    let builders = Api::read(&sources).builders().len();
    assert!(builders > 100, "the builder methods are gone: {builders}");
}

/// The checks above find what they look for.
#[test]
fn incomplete_blocks_are_found() {
    let found = |text: &str| blocks(text).first().and_then(problem).unwrap_or_default();
    for (text, part) in [
        ("```\ncode\n```", "no language"),
        ("```rust\n# use a::B;\nfn f() {}\n```", "only rustdoc hides: `# use a::B;`"),
        ("```rust\nfn f() {\n    #\n}\n```", "only rustdoc hides: `    #`"),
        ("```rust\n#\nfn f() {}\n```", "only rustdoc hides: `#`"),
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
    let source = "/// A.\npub struct Root {\n    pub roots: u8,\n}\n/// SEP-2577\npub struct Log {\n    pub logging: u8,\n}\n";
    let items = [("Root", false), ("roots", false), ("Log", true), ("logging", true)];
    assert_eq!(deprecated_items(source), items);
}

/// A made-up library: a builder, another with methods of the same names, and methods that are no builder's.
const LIBRARY: &str = "
    mod a;
    pub use a::{Car, Bus, car};
    pub(crate) use a::Secret;
    macro_rules! colours { () => { pub fn red(mut self) -> Self { self } }; }
    pub struct Car;
    impl Car {
        pub fn new(name: impl Fn() -> u8) -> Self { Self }
        pub fn doors(mut self, doors: u8) -> Self { self }
        pub async fn fuel(self) -> Result<Self, Error> { Ok(self) }
        pub fn wheels(&self) -> Self { Self }
        pub fn sell(self) -> u8 { 1 }
        fn repair(self) -> Self { self }
        #[doc(hidden)]
        pub fn scrap(self) -> Self { self }
        colours!();
    }
    impl<T: Into<u8>> Bus<T> {
        pub fn parse() -> Option<Bus<T>> { None }
        pub const fn doors(&mut self) -> &mut Self { self }
        colours!();
    }
    impl Default for Car { pub fn default() -> Self { Self } }
    impl Secret { pub fn doors(self) -> Self { self } }
    pub fn car() -> Car { Car }
    #[cfg(test)]
    mod tests { impl Car { pub fn test(self) -> Self { self } } }
";

/// The search for builder methods finds those that are not called, and on which type a method is called.
#[test]
fn made_up_builder_methods_are_found() {
    let source = || [Source { text: LIBRARY.into(), is_public: true, is_open: false }];
    let left = |code: &str| Vec::from_iter(uncalled(&source(), [code]));
    let all = ["Bus::doors", "Bus::parse", "Bus::red", "Car::doors", "Car::fuel", "Car::new", "Car::red"];
    assert_eq!(left("no code at all"), all);
    for (code, called) in [
        ("Car::new(|| 1).doors(3)", vec!["Car::doors", "Car::new"]),
        ("fn f(bus: &mut Bus<u8>) { bus.doors(); }", vec!["Bus::doors"]),
        ("let car = car(); car.clone().doors(2).red();", vec!["Bus::red", "Car::doors", "Car::red"]),
        ("async fn f(car: Car) { car.fuel().await?.doors(2); }", vec!["Car::doors", "Car::fuel"]),
        ("fn mine() -> Car { Car::default() } mine().doors(2);", vec!["Car::doors"]),
        ("Bus::<u8>::parse()?.doors();", vec!["Bus::doors", "Bus::parse"]),
        ("unknown.fuel().sell().doors();", vec!["Car::fuel"]),
        ("unknown.doors(); car.0.doors(); Car::doors;", vec![]),
        ("// car().doors(2)", vec![]),
    ] {
        let rest: Vec<&str> = all.into_iter().filter(|name| !called.contains(name)).collect();
        assert_eq!(left(&format!("```\n{code}\n```")), rest, "{code}");
        assert_eq!(left(&doc_comments(&format!("/// ```\n/// # {code}\n/// ```"))), rest, "{code}");
        for uncompiled in ["ignore", "text", "rust,ignore", "compile_fail", "json"] {
            assert_eq!(left(&format!("```{uncompiled}\n{code}\n```")), all, "{uncompiled}");
        }
    }
}

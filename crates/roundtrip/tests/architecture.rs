//! Imports between modules: which may use which. CONTRIBUTING.md has the picture.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[path = "architecture/graph.rs"]
mod graph;
#[path = "common/tokens.rs"]
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};

use graph::{Edges, Modules, cycles, storeys};

/// Floors of the server, the lowest first. A module uses those on its own floor and below. CONTRIBUTING.md and
/// docs/ARCHITECTURE.md show the same picture.
const SERVER_FLOORS: &[&[&str]] = &[
    &[
        "access",
        "budget",
        "cache",
        "clock",
        "delivery",
        "handshake",
        "hook",
        "keyring",
        "limits",
        "outcome",
        "peer",
        "rate",
        "when",
    ],
    &["notify"],
    &["round"],
    &["handler"],
    &["offer", "run"],
    &["ledger", "task"],
    &["started", "target", "tool_work", "methods", "task_methods", "deferred", "endpoint", "builder"],
];

/// Floors of the client, the lowest first.
const CLIENT_FLOORS: &[&[&str]] = &[
    &["change", "limits", "page", "part_numbers", "questions", "resend"],
    &["handlers", "list_bounds", "options", "request"],
    &["caller", "cache", "closing", "link", "request_time", "tools", "transport"],
    &["in_flight", "memory", "modern_client", "probe"],
    &["builder"],
    &["send", "flow", "listen", "by_hand", "task_watch", "waiting", "rounds", "streamed_call"],
    &["call", "list", "methods", "on_question", "task"],
];

/// Every source file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A line without its comment, so that prose may name what code may not use.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// The lines of a room that use something they may not.
fn crossings(folder: &str, forbidden: &[&str]) -> Vec<String> {
    let files = sources(&root().join(folder));
    assert!(!files.is_empty(), "{folder} has no sources");
    let mut crossings = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            if let Some(what) = forbidden.iter().find(|what| code(line).contains(**what)) {
                crossings.push(format!("{}:{}: uses `{what}`", file.display(), number + 1));
            }
        }
    }
    crossings
}

fn assert_none(crossings: &[String]) {
    assert!(crossings.is_empty(), "a wall is crossed:\n{}", crossings.join("\n"));
}

#[test]
fn the_core_does_no_io_and_has_no_clock_and_no_randomness() {
    let io = [
        "tokio",
        "std::net",
        "std::fs",
        "std::env",
        "std::process",
        "std::thread",
        "std::io",
        "Instant::now",
        "SystemTime::now",
        "hyper",
        "reqwest",
        "getrandom",
        "rand::",
        "OsRng",
        "tracing",
    ];
    assert_none(&crossings("crates/roundtrip-core/src", &io));
}

#[test]
fn the_rooms_of_the_core_import_one_way() {
    let walls: [(&str, &[&str]); 6] = [
        (
            "wire",
            &["crate::error", "crate::seal", "crate::round", "crate::form", "crate::exchange", "crate::auth"],
        ),
        ("form", &["crate::error", "crate::seal", "crate::round", "crate::exchange", "crate::auth"]),
        ("seal", &["crate::error", "crate::round", "crate::form", "crate::exchange", "crate::auth"]),
        ("round", &["crate::error", "crate::exchange", "crate::auth"]),
        ("exchange", &["crate::seal", "crate::round", "crate::auth"]),
        ("auth", &["crate::error", "crate::round", "crate::form", "crate::exchange"]),
    ];
    for (room, forbidden) in walls {
        assert_none(&crossings(&format!("crates/roundtrip-core/src/{room}"), forbidden));
    }
}

#[test]
fn servers_and_clients_do_not_know_each_other_or_the_edges() {
    let edges = [
        "crate::http",
        "crate::stdio",
        "crate::in_process",
        "hyper",
        "reqwest",
        "tokio::net",
        "tokio::process",
    ];
    assert_none(&crossings(
        "crates/roundtrip/src/server",
        &[&edges[..], &["crate::client", "crate::testing"]].concat(),
    ));
    assert_none(&crossings(
        "crates/roundtrip/src/client",
        &[&edges[..], &["crate::server", "crate::testing"]].concat(),
    ));
}

#[test]
fn telemetry_knows_neither_servers_nor_clients() {
    let rooms = ["crate::server", "crate::client", "crate::http", "crate::stdio", "crate::legacy"];
    assert_none(&crossings("crates/roundtrip/src/telemetry", &rooms));
}

#[test]
fn the_edges_do_not_know_each_other() {
    assert_none(&crossings("crates/roundtrip/src/http", &["crate::stdio", "crate::in_process"]));
    assert_none(&crossings("crates/roundtrip/src/stdio", &["crate::http", "crate::in_process"]));
    assert_none(&crossings(
        "crates/roundtrip/src/testing",
        &["crate::http", "crate::stdio", "crate::client"],
    ));
}

/// Reads the module graph of a room of the SDK.
fn graph_of(room: &str) -> Edges {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules = Modules::default();
    for file in sources(&src.join(room)) {
        let text = fs::read_to_string(&file).expect("a source file");
        modules.read(file.strip_prefix(&src).expect("a file below src"), &text);
    }
    modules.edges()
}

/// Returns the uses of a module on a higher floor, and the modules that stand on none.
fn ascents(floors: &[&[&str]], storeys: &Edges) -> Vec<String> {
    let floor = |module: &str| floors.iter().position(|floor| floor.contains(&module));
    let mut ascents = Vec::new();
    for (from, used) in storeys {
        let Some(height) = floor(from) else {
            ascents.push(format!("`{from}` is on no floor"));
            continue;
        };
        let higher = used.iter().filter(|to| floor(to).is_none_or(|other| other > height));
        ascents.extend(higher.map(|to| format!("`{from}` uses `{to}` on a higher floor")));
    }
    ascents
}

#[test]
fn the_modules_of_the_server_import_downwards() {
    let edges = graph_of("server");
    assert!(
        edges.len() > 40 && edges["server::handler::call"].contains("server::round::input"),
        "{edges:#?}"
    );
    assert_none(&ascents(SERVER_FLOORS, &storeys("server", &edges)));
}

#[test]
fn no_modules_of_the_server_import_each_other() {
    let edges = graph_of("server");
    assert_eq!(cycles(&edges), [], "these files use each other");
    assert_eq!(cycles(&storeys("server", &edges)), [], "these folders use each other");
}

#[test]
fn the_modules_of_the_client_import_downwards_and_never_each_other() {
    let edges = graph_of("client");
    assert!(edges.len() > 15 && edges["client::call"].contains("client::rounds"), "{edges:#?}");
    assert_none(&ascents(CLIENT_FLOORS, &storeys("client", &edges)));
    assert_eq!(cycles(&edges), [], "these files use each other");
}

/// Returns the module graph of a few made-up files.
fn made_up(files: &[(&str, &str)]) -> Edges {
    let mut modules = Modules::default();
    files.iter().for_each(|(file, text)| modules.read(Path::new(file), text));
    modules.edges()
}

/// The check of imports can fail: a circle is found however an import is written.
#[test]
fn a_made_up_circle_is_found() {
    let plain = ("room/b.rs", "pub struct B; pub struct C;");
    for import in [
        "use super::a::A;",
        "use crate::room::{c::{D as _}, a::{self, A as Other}};",
        "pub use super::a::A; fn make() -> A { A }",
        "fn make() { let a = super::a::A; }",
        "made!(one => crate::room::a::A);",
        "mod inner { use super::super::a::A; }",
        "use super::A;",
        "use super::facade::A;",
    ] {
        let b = format!("{} {import}", plain.1);
        let edges = made_up(&[
            ("room/mod.rs", "mod a; mod b; mod facade; pub(super) use facade::A;"),
            ("room/facade.rs", "pub(super) use super::a::A;"),
            ("room/a.rs", "use super::b::B; pub struct A;"),
            ("room/b.rs", &b),
        ]);
        let circle = ["room::a", "room::b"].map(str::to_owned).into();
        assert_eq!(cycles(&edges), [circle], "{import}");
    }
}

/// The check of imports sees no circle where there is none.
#[test]
fn a_facade_and_tests_make_no_circle() {
    let edges = made_up(&[
        ("room/mod.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("room/a.rs", "use super::B; pub struct A; fn f() -> impl Sized + use<> { B }"),
        (
            "room/b.rs",
            "/// See [`super::a::A`].\npub struct B; #[cfg(test)] mod tests { use super::super::a::A; }",
        ),
        ("room/b/tests.rs", "use super::super::a::A;"),
        ("room/c.rs", "#[cfg(test)] use super::{d::D}; pub struct C;"),
        ("room/d.rs", "use super::c::C; pub struct D;"),
    ]);
    assert_eq!(cycles(&edges), []);
    assert_eq!(edges["room::a"], ["room::b".to_owned()].into());
    assert!(edges["room::b"].is_empty() && edges["room"].is_empty());
}

/// The check of floors can fail.
#[test]
fn a_made_up_ascent_is_found() {
    let edges = made_up(&[
        ("room/low.rs", "use super::high::H; pub struct L;"),
        ("room/high/mod.rs", "mod deep; pub use deep::H;"),
        ("room/high/deep.rs", "pub struct H;"),
        ("room/new.rs", ""),
    ]);
    let found = ascents(&[&["low"], &["high"]], &storeys("room", &edges));
    assert_eq!(found, ["`low` uses `high` on a higher floor", "`new` is on no floor"]);
}

/// The handshake eras live in one folder. Only its doors use it, and `lib.rs`, which names the room; comments may speak of it.
#[test]
fn the_handshake_eras_are_used_in_one_room_and_at_its_doors() {
    let old = ["crate::legacy", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "V2025_", "V2024_"];
    let allowed = [
        "crates/roundtrip/src/legacy/",
        "crates/roundtrip-core/src/wire/version.rs",
        "crates/roundtrip/src/lib.rs",
        "crates/roundtrip/src/http/legacy.rs",
        "crates/roundtrip/src/stdio/legacy.rs",
        "crates/roundtrip/src/http/client/legacy",
        "crates/roundtrip/src/stdio/client/legacy",
    ];
    for room in ["crates/roundtrip/src", "crates/roundtrip-core/src", "crates/roundtrip-cli/src"] {
        let mut crossings = crossings(room, &old);
        crossings.retain(|line| !allowed.iter().any(|allowed| line.contains(allowed)));
        assert_none(&crossings);
    }
}

#[test]
fn the_room_of_the_old_eras_imports_no_edge() {
    assert_none(&crossings(
        "crates/roundtrip/src/legacy",
        &["crate::stdio", "crate::http", "crate::testing"],
    ));
}

#[test]
fn the_command_the_stores_and_the_fixtures_use_the_public_api_alone() {
    for folder in ["crates/roundtrip-cli/src", "crates/roundtrip-store/src", "interop/src", "benches/src"] {
        assert_none(&crossings(folder, &["roundtrip_core"]));
    }
}

#[test]
fn nothing_is_decoded_by_shape() {
    // The one use there is writes the content kinds we do not know; it reads nothing.
    let crossings = crossings("crates", &["serde(untagged)"]);
    let reading: Vec<String> = crossings
        .into_iter()
        .filter(|line| {
            !line.contains("wire/content.rs")
                && !line.contains("wire/sampling.rs")
                && !line.contains("/tests/")
        })
        .collect();
    assert_none(&reading);
}

/// The lines of a source file before its tests, with their numbers.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..tests].lines().map(code).enumerate()
}

/// Returns whether a line decodes JSON past `wire::json`, so that a struct could be read from a list.
fn decodes_by_position(line: &str) -> bool {
    let by_itself = line.contains("serde_json::from_") || line.contains("serde_json::Deserializer::");
    // An implementation of `Deserialize` hands on the deserializer that it was given.
    let given =
        ["deserializer)", "rest)", "json::ByName::new(", "ByName::new(", "MapAccessDeserializer::new("];
    let given =
        |what: &str| given.iter().any(|given| what.starts_with(given)) || what.starts_with("SeqAccess");
    let mut decoded = line.split("::deserialize(").skip(1);
    by_itself || decoded.any(|what| !given(what))
}

/// JSON of peers and of stores is decoded by `wire::json`, which reads structs by the names of their fields, never
/// from lists.
#[test]
fn structs_are_decoded_by_name() {
    // These decode lists and maps of raw text, a path for an error, or strings; `decode.rs` is `wire::json` itself.
    let exempt = [
        "wire/serde/decode.rs",
        "wire/rpc.rs",
        "auth/json.rs",
        "round/responses.rs",
        "handler/extract.rs",
        "handler/strings.rs",
    ];
    let mut found = Vec::new();
    for krate in ["roundtrip", "roundtrip-core", "roundtrip-store", "roundtrip-cli"] {
        for file in sources(&root().join("crates").join(krate).join("src")) {
            let is_test = file.iter().any(|part| part == "tests" || part == "tests.rs" || part == "testing");
            if is_test || exempt.iter().any(|exempt| file.ends_with(exempt)) {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source file");
            let lines = product_lines(&text).filter(|(_, line)| decodes_by_position(line));
            found.extend(lines.map(|(number, line)| format!("{}:{}:{line}", file.display(), number + 1)));
        }
    }
    assert!(found.is_empty(), "decode with `wire::json`:\n{}", found.join("\n"));
    for line in
        ["serde_json::from_slice::<T>(bytes)", "T::deserialize(value)", "serde_json::from_value(value)"]
    {
        assert!(decodes_by_position(line), "{line}");
    }
    assert!(!decodes_by_position("json::from_str(text)"));
}

/// Source files are short enough to be read at once; tests may be somewhat longer.
#[test]
fn rooms_stay_small() {
    for folder in ["crates", "interop/src", "benches/src", "tests", "xtask/src"] {
        for file in sources(&root().join(folder)) {
            let lines = fs::read_to_string(&file).expect("a source file").lines().count();
            let most = if file.iter().any(|part| part == "tests" || part == "tests.rs") { 500 } else { 450 };
            assert!(lines <= most, "{}: {lines} lines are more than a room holds", file.display());
        }
    }
}

/// Returns the first lines of the doc comments of a source file.
fn summaries(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut before = false;
    for line in text.lines().map(str::trim_start) {
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let (Some(doc), false) = (doc, before) {
            found.push(doc.trim());
        }
        before = doc.is_some();
    }
    found
}

/// The first sentence of a doc comment says what the item is: a summary that opens with a wh-clause is a riddle. The share may
/// fall, and never rise.
#[test]
fn summaries_say_what_the_item_is() {
    let riddles = ["What", "Who", "Whoever", "Whose", "Where", "Which", "When", "Why", "How", "Whether"];
    let (mut all, mut open_with_one) = (0, Vec::new());
    for krate in ["roundtrip", "roundtrip-core", "roundtrip-store", "roundtrip-macros", "roundtrip-cli"] {
        for file in sources(&root().join("crates").join(krate).join("src")) {
            let text = fs::read_to_string(&file).expect("a source file");
            for summary in summaries(&text) {
                all += 1;
                let first = summary.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
                if riddles.contains(&first) {
                    open_with_one.push(format!("{}: {summary}", file.display()));
                }
            }
        }
    }
    let most = all / 200;
    assert!(open_with_one.len() <= most, "more than 1 in 200 of {all}:\n{}", open_with_one.join("\n"));
}

/// Every file that docs/ARCHITECTURE.md leads a reader through is there.
#[test]
fn the_walks_of_the_architecture_name_files_that_exist() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the document");
    let mut named = 0;
    for file in text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
        let path = match file.split_once('/') {
            Some(("core", file)) => root().join("crates/roundtrip-core/src").join(file),
            Some(("cli", file)) => root().join("crates/roundtrip-cli/src").join(file),
            Some(("store", file)) => root().join("crates/roundtrip-store/src").join(file),
            _ => root().join("crates/roundtrip/src").join(file),
        };
        assert!(path.is_file(), "{file} is not there");
        named += 1;
    }
    assert!(named > 40, "the walks are gone: {named} files");
}

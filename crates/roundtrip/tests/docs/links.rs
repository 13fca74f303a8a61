//! Links between pages lead to files and headings that exist, and the book has every page.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::{pages, root, text_of};

/// Pages at the root and below `docs` that are written by hand, besides those of the manual.
const OTHERS: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/ARCHITECTURE.md",
    "docs/BENCHMARKING.md",
    "docs/README.md",
    "docs/SUMMARY.md",
    "interop/README.md",
];

fn all_pages() -> Vec<PathBuf> {
    pages().into_iter().chain(OTHERS.iter().map(|page| root().join(page))).collect()
}

/// Lines of a page outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

/// Texts and targets of the links of a page, in order. A text may go over two lines.
fn links(text: &str) -> Vec<(String, String)> {
    let prose = prose(text).collect::<Vec<_>>().join("\n");
    let ends = prose.match_indices("](").map(|(at, _)| prose.split_at(at));
    let link = ends.map(|(before, behind)| {
        let text = before.rsplit('[').next().unwrap_or_default();
        let target = behind[2..].split(')').next().unwrap_or_default();
        (text.to_owned(), target.to_owned())
    });
    link.collect()
}

/// Targets that lead into the repository.
fn own_targets(text: &str) -> impl Iterator<Item = String> {
    links(text).into_iter().map(|(_, target)| target).filter(|target| !target.contains("://"))
}

/// Anchor of a heading as code hosts and mdBook make it: lower case, blanks as hyphens, punctuation gone.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// Problem of a link on a page.
fn problem(page: &Path, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, rest)| (file, Some(rest)));
    let path = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    if !path.exists() {
        return Some(format!("`{target}` leads nowhere"));
    }
    let heading = heading?;
    let known = anchors(&text_of(&path));
    (!known.iter().any(|anchor| anchor == heading)).then(|| format!("`{target}`: no such heading"))
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut problems = Vec::new();
    let mut followed = 0;
    for page in all_pages() {
        for target in own_targets(&text_of(&page)) {
            problems.extend(problem(&page, &target).map(|problem| format!("{}: {problem}", page.display())));
            followed += 1;
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(followed > 150, "the links are gone: {followed}");
}

/// Headings that are there twice have anchors that depend on their order, so a link to one would not be checked.
#[test]
fn headings_of_a_page_are_unique() {
    for page in pages() {
        let anchors = anchors(&text_of(&page));
        let unique: BTreeSet<&String> = anchors.iter().collect();
        assert_eq!(unique.len(), anchors.len(), "{}: a heading is there twice", page.display());
    }
}

/// Path of a link's file, without detours.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(target.split('#').next().unwrap_or_default()).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// Pages that lines which begin so name first, with their titles, in order.
fn named(page: &Path, beginnings: &[&str]) -> Vec<(String, PathBuf)> {
    let text = text_of(page);
    let entries = text.lines().filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)));
    let first = entries.filter_map(|line| links(line).into_iter().next());
    first.map(|(title, target)| (title, resolved(page, &target))).collect()
}

/// Pages of the book.
fn in_book() -> Vec<(String, PathBuf)> {
    named(&root().join("docs/SUMMARY.md"), &["[", "- ["])
}

/// The book has every page of the manual under its own title, in the order of the index.
#[test]
fn the_summary_names_every_page() {
    let index = root().join("docs/manual/README.md");
    let mut in_book = in_book();
    in_book.retain(|(_, page)| page.starts_with(root().join("docs/manual")));
    let first = (String::from("The manual"), index.clone());
    let in_index: Vec<_> = std::iter::once(first).chain(named(&index, &["| ["])).collect();
    assert_eq!(in_book, in_index, "docs/SUMMARY.md and docs/manual/README.md differ");

    let pages: BTreeSet<PathBuf> = pages().into_iter().skip(1).collect();
    let paged: BTreeSet<PathBuf> = in_book.iter().map(|(_, page)| page.clone()).collect();
    assert_eq!(paged, pages, "the book and the folder differ");
    for (title, page) in in_book {
        assert!(text_of(&page).starts_with(&format!("# {title}\n")), "{}: not `{title}`", page.display());
    }
}

/// A book has its own pages alone: mdBook makes `.html` of the ending of every other page that one of them links to. Its first
/// page is copied to the top, where its links have to lead to the same pages.
#[test]
fn pages_of_the_book_link_to_no_page_outside() {
    assert_eq!(
        in_book().into_iter().next(),
        Some((String::from("Roundtrip"), root().join("docs/README.md")))
    );
    for (_, page) in in_book() {
        for target in own_targets(&text_of(&page)) {
            let path = resolved(&page, &target);
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            let outside = is_page && !path.starts_with(root().join("docs"));
            assert!(!outside, "{}: `{target}` is no page of the book", page.display());
        }
    }
}

/// The checks above find what they look for.
#[test]
fn made_up_links_are_found() {
    let text = "# A *b*: `c_d`, e-f?\n[x\ny](a.md#b) `[no]`\n```sh\n# [z](no.md)\n```\n## B\n";
    assert_eq!(anchors(text), ["a-b-c_d-e-f", "b"]);
    assert_eq!(links(text), [("x\ny".to_owned(), "a.md#b".to_owned())]);
    let page = root().join("docs/manual/seal.md");
    assert_eq!(problem(&page, "#keys"), None);
    assert_eq!(problem(&page, "replay.md#what-does-not"), None);
    assert_eq!(problem(&page, "replay.md#gone").as_deref(), Some("`replay.md#gone`: no such heading"));
    assert_eq!(problem(&page, "gone.md").as_deref(), Some("`gone.md` leads nowhere"));
    assert_eq!(resolved(&page, "../../README.md#a"), root().join("README.md"));
}

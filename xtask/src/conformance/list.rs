//! The checked-in list: which scenarios must pass, and which are skipped, with the reason why.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};

/// Which side of the protocol is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leg {
    Server,
    Client,
}

impl Leg {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "server" => Some(Self::Server),
            "client" => Some(Self::Client),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) leg: Leg,
    pub(crate) revision: String,
    /// A scenario's name; in a skip it may end in `*`.
    pub(crate) scenario: String,
    pub(crate) wanted: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// At least this many successful checks, and nothing else.
    Pass { at_least: usize },
    /// Not to pass yet, for this reason.
    Skip { reason: String },
}

impl Entry {
    pub(crate) fn covers(&self, scenario: &str) -> bool {
        match self.scenario.strip_suffix('*') {
            Some(start) => scenario.starts_with(start),
            None => self.scenario == scenario,
        }
    }

    fn is_skip(&self) -> bool {
        matches!(self.wanted, Wanted::Skip { .. })
    }
}

/// Reads the list; the first line that makes no sense is an error that names it.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = parse_line(line).with_context(|| format!("line {}: {line}", index + 1))?;
        let same = |other: &Entry| {
            (other.leg, &other.revision, &other.scenario) == (entry.leg, &entry.revision, &entry.scenario)
        };
        ensure!(!entries.iter().any(same), "line {}: {line}: listed twice", index + 1);
        entries.push(entry);
    }
    Ok(entries)
}

fn parse_line(line: &str) -> Result<Entry> {
    let (rest, reason) = match line.strip_prefix("skip ") {
        Some(rest) => {
            let (rest, reason) = rest.split_once(" -- ").unwrap_or((rest, ""));
            ensure!(!reason.trim().is_empty(), "a skip needs a reason: skip .. -- <reason>");
            (rest, Some(reason.trim().to_owned()))
        }
        None => (line, None),
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (leg, revision, scenario, at_least) = match words[..] {
        [leg, revision, scenario] => (leg, revision, scenario, 1),
        [leg, revision, scenario, ">=", number] if reason.is_none() => {
            (leg, revision, scenario, number.parse().context("how many checks?")?)
        }
        _ => bail!("wanted: [skip] <leg> <revision> <scenario> [>= N] [-- <reason>]"),
    };
    ensure!(reason.is_some() || !scenario.contains('*'), "only a skip may stand for several scenarios");
    Ok(Entry {
        leg: Leg::parse(leg).with_context(|| format!("{leg} is neither server nor client"))?,
        revision: revision.to_owned(),
        scenario: scenario.to_owned(),
        wanted: reason.map_or(Wanted::Pass { at_least }, |reason| Wanted::Skip { reason }),
    })
}

/// What a leg runs at one revision: each scenario once, with what is wanted of it. A scenario that is
/// listed by name is wanted although a skip's `*` covers it too.
pub(crate) fn plan(entries: &[&Entry], known: &BTreeSet<String>) -> Vec<(String, Wanted)> {
    let mut plan: Vec<(String, Wanted)> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_skip()) {
        plan.push((entry.scenario.clone(), entry.wanted.clone()));
    }
    for entry in entries.iter().filter(|entry| entry.is_skip()) {
        for scenario in known.iter().filter(|scenario| entry.covers(scenario)) {
            if !plan.iter().any(|(name, _)| name == scenario) {
                plan.push((scenario.clone(), entry.wanted.clone()));
            }
        }
    }
    plan
}

/// Mistakes in the list itself: unknown names, and required scenarios that it does not mention.
pub(crate) fn faults(
    entries: &[&Entry],
    required: &BTreeSet<String>,
    known: &BTreeSet<String>,
) -> Vec<String> {
    let unknown = entries
        .iter()
        .filter(|entry| !known.iter().any(|scenario| entry.covers(scenario)))
        .map(|entry| format!("{} is no scenario of the suite", entry.scenario));
    let forgotten = required
        .iter()
        .filter(|scenario| !entries.iter().any(|entry| entry.covers(scenario)))
        .map(|scenario| format!("{scenario} is required, and neither listed nor skipped"));
    unknown.chain(forgotten).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn reads_both_kinds_of_line() {
        let list =
            parse("# why\n\nserver V tools-list\nclient V meta >= 8\nskip client V auth/* -- not built\n")
                .unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list[0].wanted, Wanted::Pass { at_least: 1 });
        assert_eq!(list[1].wanted, Wanted::Pass { at_least: 8 });
        assert_eq!(list[2].wanted, Wanted::Skip { reason: "not built".into() });
        assert!(list[2].covers("auth/dpop") && !list[2].covers("meta"));
    }

    #[test]
    fn a_skip_without_a_reason_is_refused() {
        for line in ["skip server V tasks-*", "skip server V tasks-* -- ", "skip server V tasks-* --"] {
            let error = format!("{:#}", parse(line).unwrap_err());
            assert!(error.contains("needs a reason"), "{error}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for line in ["server V", "proxy V a", "server V a*", "server V a >= many", "server V a\nserver V a"] {
            let error = format!("{:#}", parse(line).unwrap_err());
            assert!(error.starts_with("line "), "{error}");
        }
    }

    #[test]
    fn a_name_wins_over_a_star() {
        let list = parse("skip server V a-* -- later\nserver V a-two").unwrap();
        let list: Vec<&Entry> = list.iter().collect();
        let plan = plan(&list, &names(&["a-one", "a-two", "b"]));
        assert_eq!(plan.len(), 2);
        assert_eq!(plan[0], ("a-two".into(), Wanted::Pass { at_least: 1 }));
        assert_eq!(plan[1], ("a-one".into(), Wanted::Skip { reason: "later".into() }));
    }

    #[test]
    fn the_list_cannot_rot() {
        let list = parse("server V gone\nskip server V old-* -- later\nserver V kept").unwrap();
        let list: Vec<&Entry> = list.iter().collect();
        let faults = faults(&list, &names(&["kept", "new"]), &names(&["kept", "new"]));
        assert_eq!(
            faults,
            [
                "gone is no scenario of the suite",
                "old-* is no scenario of the suite",
                "new is required, and neither listed nor skipped"
            ]
        );
    }
}

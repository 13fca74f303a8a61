//! Whatever a client does on the way, a flow that ends, ends as if everything had been answered at once.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// The values that the user has in mind: what must come out.
fn truth(key: &str) -> u64 {
    1 + KEYS.iter().position(|known| *known == key).unwrap() as u64
}

/// What a client does with one key in one round.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Answers, if it is asked; ahead of time or again, otherwise.
    Answers,
    /// Leaves it out.
    Nothing,
    /// An answer that breaks the form.
    Breaks,
    /// An answer to another kind of question.
    WrongKind,
    /// Something under a key that nobody has.
    Stranger,
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        3 => Just(Does::Answers),
        2 => Just(Does::Nothing),
        1 => Just(Does::Breaks),
        1 => Just(Does::WrongKind),
        1 => Just(Does::Stranger),
    ]
}

/// A handler: two questions together, then two in turn, the last worded by the answer before.
fn run(journal: &mut Journal) -> Result<Vec<u64>, Vec<Question>> {
    let value = |answer: FullAnswer| match answer {
        FullAnswer::Accepted(content) => content["n"].as_u64().unwrap(),
        other => panic!("{other:?}"),
    };
    let (a, b) = (form("a", "first?"), form("b", "second?"));
    let (a, b) = match (ask(journal, &a), ask(journal, &b)) {
        (Some(a), Some(b)) => (value(a), value(b)),
        (found_a, found_b) => {
            let open = [(found_a, a), (found_b, b)].into_iter().filter(|(found, _)| found.is_none());
            return Err(open.map(|(_, question)| question).collect());
        }
    };
    let mut values = vec![a, b];
    for key in ["c", "d"] {
        let question = form(key, &format!("after {values:?}?"));
        match ask(journal, &question) {
            Some(answer) => values.push(value(answer)),
            None => return Err(vec![question]),
        }
    }
    Ok(values)
}

/// What the client sends in a round. What is asked is answered truly or not at all; what is not asked gets an answer
/// that must not count.
fn answers(round: &[Does; 4], asked: &[Question]) -> Value {
    let mut answers = BTreeMap::new();
    for (key, does) in KEYS.into_iter().zip(round) {
        let open = asked.iter().any(|question| question.key == key);
        match does {
            Does::Answers if open => drop(answers.insert(key, accept(truth(key)))),
            Does::Answers => drop(answers.insert(key, accept(50 + truth(key)))),
            Does::Nothing => {}
            Does::Breaks => drop(answers.insert(key, accept(1000))),
            Does::WrongKind => drop(answers.insert(key, json!({ "roots": [] }))),
            Does::Stranger => drop(answers.insert("stranger", accept(7))),
        }
    }
    json!(answers)
}

proptest! {
    /// M18: partial, stale, foreign, repeated and invalid answers, in any order, end where answering everything at
    /// once ends; and no question that has its answer is asked again.
    #[test]
    fn every_way_of_answering_ends_the_same(
        rounds in proptest::collection::vec([does(), does(), does(), does()], 0..20),
        stale in proptest::collection::vec(any::<bool>(), 20),
    ) {
        let all = [Does::Answers; 4];
        let mut journal = begin();
        let mut before: Option<(Journal, Vec<Question>)> = None;
        let mut done: Vec<String> = Vec::new();
        let mut rounds = rounds.into_iter().zip(stale);
        let mut left = 40;
        let values = loop {
            left -= 1;
            prop_assert!(left > 0, "it converges");
            match run(&mut journal) {
                Ok(values) => break values,
                Err(asked) => {
                    for question in &asked {
                        prop_assert!(!done.contains(&question.key.to_string()), "{} is asked again", question.key);
                    }
                    let (round, stale) = rounds.next().unwrap_or((all, false));
                    let open: Vec<&Question> = asked.iter().collect();
                    let mut next = next_round(&journal, &open);
                    let mut asked = asked;
                    // The client may also send an earlier state again: that flow goes on from there.
                    match (&before, stale) {
                        (Some((earlier, then)), true) => {
                            next = earlier.clone();
                            asked = then.clone();
                            done.retain(|key| earlier.peek(key).is_some());
                        }
                        _ => before = Some((next.clone(), asked.clone())),
                    }
                    let sent = answers(&round, &asked);
                    next.merge(&read_responses(&raw(&sent)).unwrap());
                    for question in &asked {
                        if sent.get(&*question.key) == Some(&accept(truth(&question.key))) {
                            done.push(question.key.to_string());
                        }
                    }
                    journal = next;
                }
            }
        };
        prop_assert_eq!(values, KEYS.map(truth).to_vec());
    }
}

/// M18: an answer given before the wording changed counts for the old wording alone, and the others stand.
#[test]
fn a_question_that_changed_is_asked_again_alone() {
    let (kept, old, new) = (form("kept", "?"), form("it", "pay 100?"), form("it", "pay 150?"));
    let mut journal = next_round(&begin(), &[&kept, &old]);
    journal.merge(&read_responses(&raw(&json!({ "kept": accept(1), "it": accept(2) }))).unwrap());
    assert!(ask(&mut journal, &kept).is_some());
    assert!(ask(&mut journal, &new).is_none());
    let mut journal = next_round(&journal, &[&new]);
    journal.merge(&read_responses(&raw(&json!({ "it": accept(3) }))).unwrap());
    assert!(ask(&mut journal, &kept).is_some());
    assert!(ask(&mut journal, &new).is_some());
}

/// A13: over a flow of fifty questions, every round adds to the journal what is new, and nothing else.
#[test]
fn a_journal_grows_by_what_is_new() {
    let questions: Vec<Question> = (0..50).map(|index| form(&format!("k-{index}"), "?")).collect();
    let mut journal = begin();
    let mut sizes = vec![journal.encode([]).len()];
    for (round, question) in questions.iter().enumerate() {
        journal = next_round(&journal, &[question]);
        journal.merge(&read_responses(&raw(&json!({ &*question.key: accept(7) }))).unwrap());
        for answered in &questions[..=round] {
            assert!(ask(&mut journal, answered).is_some());
        }
        sizes.push(journal.encode([]).len());
    }
    let grown: Vec<usize> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(grown.iter().all(|size| size.abs_diff(grown[0]) <= 1), "{grown:?}");
}

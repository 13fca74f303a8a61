use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn answered(questions: &[&Question], answers: &Value) -> Journal {
    let mut journal = next_round(&begin(), questions);
    journal.merge(&read_responses(&raw(answers)).unwrap());
    journal
}

/// M9: what was not answered is no longer open, and what was is kept.
#[test]
fn unanswered_questions_close_and_answers_stay() {
    let (a, b) = (form("a", "?"), form("b", "?"));
    let mut journal = answered(&[&a, &b], &json!({ "a": accept(1) }));
    assert!(ask(&mut journal, &a).is_some());
    assert!(ask(&mut journal, &b).is_none());
    let mut journal = next_round(&journal, &[&b]);
    journal.merge(&[]);
    assert!(ask(&mut journal, &a).is_some());
    assert!(ask(&mut journal, &b).is_none());
}

/// S2: what a journal remembers is not shown, in whole or in part.
#[test]
fn a_journal_does_not_show_what_it_remembers() {
    let a = form("a", "?");
    let mut journal = answered(&[&a], &json!({ "a": accept(70_711) }));
    journal.remember(Kind::Step, "paid", None, "s3cret");
    journal.set_state("s3cret");
    let found = format!("{:?}", journal.peek("paid"));
    let answer = format!("{:?}", ask(&mut journal, &a));
    let shown = format!("{journal:?} {found} {answer}");
    assert!(shown.contains("paid") && !shown.contains("s3cret") && !shown.contains("70711"), "{shown}");
    assert_eq!(format!("{:?}", Settled::Accepted("s3cret".into())), "Accepted(..)");
}

/// M10, M18: answers to questions that are not open are passed over, and a settled one is not replaced.
#[test]
fn answers_to_what_is_not_open_are_passed_over() {
    let (a, b) = (form("a", "?"), form("b", "?"));
    let mut journal = begin();
    journal.merge(&read_responses(&raw(&json!({ "a": accept(1), "b": accept(2) }))).unwrap());
    assert!(journal.is_empty());
    let mut journal = answered(&[&a], &json!({ "a": accept(1), "b": accept(2) }));
    let first = ask(&mut journal, &a);
    assert!(ask(&mut journal, &b).is_none());
    let mut journal = next_round(&journal, &[&b]);
    journal.merge(&read_responses(&raw(&json!({ "a": accept(9), "b": accept(2) }))).unwrap());
    assert_eq!(ask(&mut journal, &a), first);
    assert!(ask(&mut journal, &b).is_some());
}

/// M11: what is not a map of results is -32602, and the message names the place.
#[test]
fn what_is_not_a_map_of_results_is_refused() {
    for (answers, place) in [
        ("[1]", "params.inputResponses"),
        ("\"a\"", "params.inputResponses"),
        ("{\"a\":1}", "`a`"),
        ("{\"a\":null}", "`a`"),
        ("{\"a\":[]}", "`a`"),
        ("{\"a\":{\"action\":\"bogus\"}}", "params.inputResponses.a.action"),
        ("{\"unasked\":{\"action\":\"bogus\"}}", "params.inputResponses.unasked.action"),
        ("{\"a\":{\"action\":\"accept\",\"action\":\"decline\"}}", "params.inputResponses.a"),
    ] {
        let answers = RawValue::from_string(answers.to_owned()).unwrap();
        let error = read_responses(&answers).unwrap_err();
        assert_eq!(error.code, -32602, "{answers}");
        assert!(error.message.contains(place), "{answers}: {}", error.message);
    }
}

/// M10: the same key twice counts once, and it is the first that counts, wherever it is looked at.
#[test]
fn of_two_answers_under_one_key_the_first_counts() {
    let text = format!("{{\"a\":{},\"a\":{}}}", accept(1), accept(2));
    let mut journal = next_round(&begin(), &[&form("a", "?")]);
    journal.merge(&read_responses(&RawValue::from_string(text).unwrap()).unwrap());
    let Some(FullAnswer::Accepted(content)) = ask(&mut journal, &form("a", "?")) else { panic!("an answer") };
    assert_eq!(content["n"], 1);
}

/// M10: what was not asked costs its size, however many questions are open.
#[test]
fn many_answers_to_many_questions_are_taken_in_without_a_search_for_each() {
    let journal = begin();
    let pin = journal.pin(&form("0000003", "?"));
    let open: Vec<String> = (0..2_000).map(|number| format!("{number:07}")).collect();
    let bytes = journal.encode(open.iter().map(|key| (key.as_str(), pin)));
    let mut journal = Journal::decode(&bytes).unwrap();
    let unasked: Vec<String> = (5_000_000..5_200_000).map(|number| format!("\"{number}\":{{}}")).collect();
    let answers = format!("{{{},\"0000003\":{},\"0000003\":{}}}", unasked.join(","), accept(1), accept(2));
    let answers = RawValue::from_string(answers).unwrap();
    let begun = Instant::now();
    journal.merge(&read_responses(&answers).unwrap());
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let Some(FullAnswer::Accepted(content)) = ask(&mut journal, &form("0000003", "?")) else {
        panic!("an answer")
    };
    assert_eq!(content["n"], 1, "of two, the first counts");
    assert!(journal.peek("5000000").is_none());
}

/// A handler that takes a step for every entry of a client's list costs as much as the list is long.
#[test]
fn a_step_for_each_of_many_entries_is_found_without_a_search() {
    let mut journal = begin();
    let keys: Vec<String> = (0..50_000).map(|number| format!("{number:07}")).collect();
    let begun = Instant::now();
    for key in &keys {
        assert!(journal.find(key).is_none());
        journal.remember(Kind::Begun, key, None, "k");
        journal.forget(key);
        journal.remember(Kind::Step, key, None, key);
    }
    let mut journal = next_round(&journal, &[]);
    journal.remember(Kind::Step, "new", None, "1");
    for key in keys.iter().rev() {
        let found = journal.find(key).expect("remembered");
        assert_eq!((found.kind, found.value, found.used), (Kind::Step, key.as_str(), false));
    }
    assert!(journal.find("other").is_none());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// M24: state of the author's own is replaced as a whole, and is apart from anything that has a key, also an empty
/// one.
#[test]
fn own_state_is_apart_from_the_empty_key() {
    let nameless = form("", "?");
    let mut journal = answered(&[&nameless], &json!({ "": accept(1) }));
    assert_eq!(journal.state(), None);
    journal.set_state("1");
    journal.set_state("2");
    assert!(ask(&mut journal, &nameless).is_some());
    let mut journal = next_round(&journal, &[]);
    assert_eq!(journal.state(), Some("2"));
    assert!(ask(&mut journal, &nameless).is_some());
    journal.forget("");
    assert_eq!(journal.state(), Some("2"));
}

/// A7: whoever looks twice can tell.
#[test]
fn a_second_look_shows() {
    let mut journal = answered(&[&form("a", "?")], &json!({ "a": accept(1) }));
    assert!(!journal.peek("a").unwrap().used, "a peek leaves no mark");
    assert!(!journal.find("a").unwrap().used);
    assert!(journal.find("a").unwrap().used);
    assert!(!next_round(&journal, &[]).find("a").unwrap().used, "a new round begins afresh");
    journal.remember(Kind::Step, "s", None, "1");
    assert!(journal.find("s").unwrap().used, "what this run made it has used");
}

/// S8: the entry that takes the most room is found, also after it was forgotten.
#[test]
fn the_largest_entry_is_found() {
    let mut journal = begin();
    assert_eq!(journal.largest(), None);
    journal.remember(Kind::Step, "small", None, "1");
    journal.remember(Kind::Step, "large", None, "123456");
    assert_eq!(journal.largest(), Some(("large", 6)));
    journal.forget("large");
    assert_eq!(journal.largest(), Some(("small", 1)));
}

/// S3: lengths that do not add up to the text, or that cut a character in two, make no journal.
#[test]
fn lengths_have_to_fit_the_text() {
    let journal = |sizes: [u8; 2], text: &str| {
        let head = [&[2, 0][..], &[0; 16], &[Kind::Step as u8], &sizes, &[0], text.as_bytes()].concat();
        Journal::decode(&head)
    };
    let mut read = journal([2, 1], "é1").unwrap();
    assert_eq!(read.find("é").unwrap().value, "1");
    for sizes in [[1, 2], [2, 0], [2, 2], [3, 1], [0, 0], [0x80, 0x80], [255, 255]] {
        assert_eq!(journal(sizes, "é1").err(), Some(MalformedJournal), "{sizes:?}");
    }
}

/// A13: a settled answer weighs little more than what was filled in, and a replay finds it with one look.
#[test]
fn a_settled_answer_is_kept_without_its_envelope() {
    let question = form("a", "?");
    let before = next_round(&begin(), &[]).encode([]).len();
    let mut journal = answered(&[&question], &json!({ "a": accept(12) }));
    let given = next_round(&journal, &[]).encode([]).len() - before;
    assert!(ask(&mut journal, &question).is_some());
    let settled = next_round(&journal, &[]).encode([]).len() - before;
    // Kind, pin, two lengths, `a`, and `j2:12`.
    assert_eq!(settled, 1 + 8 + 2 + 1 + 5);
    assert!(given > 2 * settled, "{given}");
}

/// M14: a refusal is remembered as what it is, and takes no room.
#[test]
fn refusals_are_remembered() {
    for (action, expected) in [("decline", FullAnswer::Declined), ("cancel", FullAnswer::Cancelled)] {
        let question = form("a", "?");
        let answer = json!({ "a": { "action": action, "content": { "n": 1 } } });
        let mut journal = answered(&[&question], &answer);
        for _ in 0..3 {
            assert_eq!(ask(&mut journal, &question), Some(expected.clone()));
            assert_eq!(journal.peek("a").unwrap().value, "");
            journal = next_round(&journal, &[]);
        }
    }
}

/// M24: answers of every kind are the same in later rounds as in the first.
#[test]
fn answers_of_every_kind_survive() {
    let url = QuestionKind::Url { message: "?".into(), url: "https://a.example".into() };
    let message = json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m" });
    for (question, answer) in [
        (form("a", "?"), accept(1)),
        (Question::new("a", url), json!({ "action": "accept" })),
        (Question::new("a", QuestionKind::Sample(Box::default())), message),
        (Question::new("a", QuestionKind::Roots), json!({ "roots": [{ "uri": "file:///a" }] })),
    ] {
        let expected = FullAnswer::read(&question, &answer.to_string()).unwrap();
        let mut journal = answered(&[&question], &json!({ "a": answer }));
        for _ in 0..3 {
            assert_eq!(ask(&mut journal, &question), Some(expected.clone()), "{question:?}");
            journal = next_round(&journal, &[]);
        }
    }
}

fn entries() -> impl Strategy<Value = Vec<(u8, String, [u8; 8], String)>> {
    proptest::collection::vec((0_u8..7, ".{0,12}", any::<[u8; 8]>(), ".{0,200}"), 0..12)
}

proptest! {
    /// M24: what is remembered is there in the next round as it was, in any text, and what was forgotten is not.
    #[test]
    fn what_is_written_is_read(entries in entries(), forgotten in any::<u16>(), rounds in 0..40_u8) {
        let kinds = [
            Kind::Given, Kind::Settled, Kind::Declined, Kind::Cancelled, Kind::Step, Kind::Failed, Kind::Passed,
        ];
        let mut journal = begin();
        for _ in 0..rounds {
            journal.count_round();
        }
        for (index, (kind, key, pin, value)) in entries.iter().enumerate() {
            let key = format!("{index}{key}");
            journal.remember(kinds[usize::from(*kind)], &key, Some(Pin::from_bytes(*pin)), value);
        }
        for (index, (_, key, ..)) in entries.iter().enumerate() {
            if forgotten >> index & 1 == 1 {
                journal.forget(&format!("{index}{key}"));
            }
        }
        let mut read = next_round(&journal, &[]);
        prop_assert_eq!(read.count_round(), u32::from(rounds) + 1);
        for (index, (kind, key, pin, value)) in entries.iter().enumerate() {
            let found = read.find(&format!("{index}{key}")).map(|found| (found.kind, found.pin, found.value.to_owned()));
            // What is no answer has no pin.
            let pin = Pin::from_bytes(if *kind < 4 { *pin } else { [0; 8] });
            let kept = (kinds[usize::from(*kind)], pin, value.clone());
            prop_assert_eq!(found, (forgotten >> index & 1 == 0).then_some(kept));
        }
        // Written again, the bytes are the same: a round that adds nothing costs nothing.
        prop_assert_eq!(read.encode([]).len(), next_round(&journal, &[]).encode([]).len());
    }

    /// S3: bytes that are not a journal are refused or read, and never panic.
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), ours in any::<bool>()) {
        if let (true, Some(first)) = (ours, bytes.first_mut()) {
            *first = 2;
        }
        if let Ok(mut journal) = Journal::decode(&bytes) {
            journal.merge(&read_responses(&raw(&json!({ "a": {} }))).unwrap());
            let _ = ask(&mut journal, &form("a", "?"));
            let _ = journal.encode([]);
        }
    }

    /// S3: a journal that was cut short is refused, or is one with fewer entries.
    #[test]
    fn a_journal_cut_short_does_not_gain_entries(entries in entries(), cut in any::<proptest::sample::Index>()) {
        let mut journal = begin();
        for (index, (_, key, pin, value)) in entries.iter().enumerate() {
            journal.remember(Kind::Step, &format!("{index}{key}"), Some(Pin::from_bytes(*pin)), value);
        }
        let whole = journal.encode([]);
        if let Ok(cut) = Journal::decode(&whole[..cut.index(whole.len())]) {
            prop_assert!(whole.starts_with(&cut.encode([])));
        }
    }
}

/// M6: a round is progress if it has settled an answer, begun a step or changed the author's state, and not if it has asked,
/// taken an answer that does not fit, or passed a checkpoint.
#[test]
fn progress_is_told_from_asking_again() {
    let question = form("a", "?");
    let asked = next_round(&begin(), &[&question]);
    assert!(!asked.has_advanced());
    let mut misfit = asked.clone();
    misfit.merge(&[("a".into(), &raw(&accept(100)))]);
    assert_eq!(ask(&mut misfit, &question), None);
    misfit.remember(Kind::Passed, "place", None, "");
    assert!(!misfit.has_advanced());

    let mut answered = asked.clone();
    answered.merge(&[("a".into(), &raw(&accept(1)))]);
    assert!(!answered.has_advanced(), "nothing has read it");
    let mut unread = next_round(&answered, &[]);
    for journal in [&mut answered, &mut unread] {
        assert!(ask(journal, &question).is_some());
        assert!(journal.has_advanced());
        assert!(!next_round(journal, &[]).has_advanced());
    }

    let mut kept = asked.clone();
    kept.set_state("1");
    assert!(kept.has_advanced());
    let mut kept = next_round(&kept, &[]);
    kept.set_state("1");
    assert!(!kept.has_advanced(), "the same state");
    kept.set_state("2");
    assert!(kept.has_advanced());
    let mut stepped = asked;
    stepped.remember(Kind::Begun, "step", None, "key");
    assert!(stepped.has_advanced());
}

/// N2, G3: the record of what was sent, and the number of stalled rounds, are carried on; a journal without them has no byte more.
#[test]
fn what_was_sent_is_carried_on() {
    let mut journal = begin();
    let before = journal.encode([]).len();
    for logs in [0, 1, 16, 17, 400] {
        let mut sent = SentNotifications::default();
        sent.progress = (logs % 2 == 0).then_some(0.5);
        (0..logs).for_each(|line| sent.log(1, &line.to_string()));
        journal.set_sent(Some(Box::new(sent.clone())));
        journal.count_stalled(Duration::from_secs(600));
        let mut next = next_round(&journal, &[]);
        assert_eq!(next.stalled(), journal.stalled());
        assert_eq!(next.take_sent().as_deref(), Some(&sent));
        assert!(journal.encode([]).len() <= before + 13 + 61, "{logs}");
        sent.parts = logs + 1;
        journal.set_sent(Some(Box::new(sent.clone())));
        assert_eq!(next_round(&journal, &[]).take_sent().as_deref(), Some(&sent));
    }
    assert_eq!(begin().encode([]).len(), before);
    assert_eq!(
        (next_round(&begin(), &[]).stalled(), next_round(&begin(), &[]).take_sent()),
        (Stalled::NONE, None)
    );
}

/// N7: the trace context of a round is carried on until another takes its place; a journal without one has no byte more.
#[test]
fn a_trace_context_is_carried_on() {
    let question = form("a", "?");
    let (plain, mut journal) = (begin(), begin());
    journal.set_trace([7; 25]);
    let open = [("a", journal.pin(&question))];
    let without = plain.encode(open).len();
    assert_eq!(journal.encode(open).len(), without + 26, "a tag and the context");
    let mut next = next_round(&journal, &[&question]);
    assert_eq!(next.trace(), Some(&[7; 25]));
    assert_eq!(next_round(&next, &[]).trace(), Some(&[7; 25]), "a round without telemetry passes it on");
    next.set_trace([8; 25]);
    assert_eq!(next_round(&next, &[]).trace(), Some(&[8; 25]));
    assert_eq!(next_round(&plain, &[&question]).trace(), None);
}

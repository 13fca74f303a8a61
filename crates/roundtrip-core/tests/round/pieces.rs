//! A journal in pieces is the journal as a whole.

use proptest::prelude::*;

use super::*;

fn pins() -> PinKey {
    PinKey::new([7; 16])
}

/// A change of a journal, and the ends of rounds.
#[derive(Debug, Clone)]
enum Change {
    Begin(u8),
    Remember(u8, String),
    Forget(u8),
    SetState(String),
    /// Stores a piece in mid-round.
    Piece,
    /// Ends a round that asks these, and begins the next with answers to some.
    Round(Vec<u8>, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let key = 0..8_u8;
    let keys = || proptest::collection::vec(10..18_u8, 0..4);
    prop_oneof![
        key.clone().prop_map(Change::Begin),
        (key.clone(), "[a-z]{0,12}").prop_map(|(key, value)| Change::Remember(key, format!("\"{value}\""))),
        key.prop_map(Change::Forget),
        "[a-z]{0,12}".prop_map(|state| Change::SetState(format!("\"{state}\""))),
        Just(Change::Piece),
        (keys(), keys()).prop_map(|(asked, answered)| Change::Round(asked, answered)),
    ]
}

/// Pieces as a store keeps them.
#[derive(Default)]
struct Stored(Vec<Vec<u8>>);

impl Stored {
    fn add(&mut self, last: LastPiece) {
        match last {
            LastPiece::None => {}
            LastPiece::Next(piece) => self.0.push(piece),
            LastPiece::Whole(journal) => self.0 = vec![journal],
        }
    }

    fn read(&self) -> Journal {
        let journal = Journal::from_pieces(self.0.iter().map(Vec::as_slice)).unwrap();
        journal.unwrap_or_else(|| Journal::in_pieces(pins()))
    }
}

/// The entries of a journal, by kind and key: their order is not part of it.
fn entries(journal: &Journal) -> Vec<(String, String, String)> {
    let entry =
        |(kind, key, value): (Kind, &str, &str)| (format!("{kind:?}"), key.to_owned(), value.to_owned());
    let mut entries: Vec<_> = journal.entries().map(entry).collect();
    entries.sort();
    entries
}

/// Ends a round of two journals that ask the same, stores one of them, and begins the next.
fn end_round(whole: &mut Journal, split: &mut Journal, stored: &mut Stored, asked: &[u8], answered: &[u8]) {
    let questions: Vec<Question> = asked.iter().map(|key| form(&format!("q{key}"), "?")).collect();
    let mut open: Vec<(&str, Pin)> = Vec::new();
    for question in &questions {
        if !open.iter().any(|(key, _)| *key == question.key) {
            open.push((&question.key, whole.pin(question)));
        }
    }
    for (key, _) in &open {
        whole.forget(key);
        split.forget(key);
    }
    stored.add(split.last_piece(open.iter().copied()));
    *whole = Journal::decode(&whole.encode(open.iter().copied())).unwrap();
    *split = stored.read();
    assert_eq!(entries(split), entries(whole));
    let answers: Vec<(Cow<'_, str>, Box<RawValue>)> = answered
        .iter()
        .map(|key| (format!("q{key}").into(), serde_json::value::to_raw_value(&accept(3)).unwrap()))
        .collect();
    let answers: Vec<_> = answers.iter().map(|(key, answer)| (key.clone(), &**answer)).collect();
    whole.merge(&answers);
    split.merge(&answers);
}

proptest! {
    /// T7: whatever changes, and wherever pieces are stored, the pieces are the journal.
    #[test]
    fn pieces_are_the_whole(changes in proptest::collection::vec(change(), 0..60)) {
        let (mut whole, mut stored) = (Journal::new(pins()), Stored::default());
        let mut split = Journal::in_pieces(pins());
        for change in changes {
            for journal in [&mut whole, &mut split] {
                match &change {
                    Change::Begin(key) if journal.peek(&format!("s{key}")).is_none() => {
                        journal.remember(Kind::Begun, &format!("s{key}"), None, "idempotency");
                    }
                    Change::Remember(key, value) => {
                        journal.forget(&format!("s{key}"));
                        journal.remember(Kind::Step, &format!("s{key}"), None, value);
                    }
                    Change::Forget(key) => journal.forget(&format!("s{key}")),
                    Change::SetState(state) => journal.set_state(state),
                    _ => {}
                }
            }
            match &change {
                Change::Piece => stored.0.extend(split.next_piece(std::iter::empty())),
                Change::Round(asked, answered) => {
                    end_round(&mut whole, &mut split, &mut stored, asked, answered);
                }
                _ => {}
            }
            prop_assert_eq!(entries(&split), entries(&whole));
        }
    }
}

/// Z3: a round that changes nothing and asks nothing adds no piece, so that a task may wait for long.
#[test]
fn waiting_adds_no_pieces() {
    let mut journal = Journal::in_pieces(pins());
    journal.remember(Kind::Step, "step", None, "1");
    let mut stored = Stored::default();
    stored.add(journal.last_piece(std::iter::empty()));
    for _ in 0..1_000 {
        let mut journal = stored.read();
        journal.merge(&[]);
        stored.add(journal.last_piece(std::iter::empty()));
    }
    assert_eq!(stored.0.len(), 1);
}

/// Z3: what is not needed any more is dropped at the end of a round: pieces hold a few times what is remembered, and are few.
#[test]
fn pieces_hold_little_more_than_is_remembered() {
    let mut stored = Stored::default();
    for turn in 0..1_000 {
        let mut journal = stored.read();
        journal.set_state(&format!("\"{turn}{}\"", "x".repeat(10_000)));
        stored.add(journal.last_piece(std::iter::empty()));
        let bytes: usize = stored.0.iter().map(Vec::len).sum();
        assert!(bytes < 120_000 && stored.0.len() <= 256, "{bytes} bytes in {} pieces", stored.0.len());
    }
    let mut journal = stored.read();
    for number in 0..1_000 {
        journal.remember(Kind::Step, &format!("step {number}"), None, "1");
        stored.0.extend(journal.next_piece(std::iter::empty()));
    }
    stored.add(journal.last_piece(std::iter::empty()));
    assert_eq!(stored.0.len(), 1, "many pieces are one again");
    assert_eq!(stored.read().entries().count(), 1_001);
}

/// T4: a question that is shown while its round continues is open for the next one, as it was asked last; an answer that came
/// meanwhile counts in its place.
#[test]
fn questions_of_a_round_that_continues_are_open() {
    let (first, changed, other) = (form("menu", "?"), form("menu", "Which?"), form("details", "?"));
    let mut stored = Stored::default();
    let mut journal = Journal::in_pieces(pins());
    for question in [&first, &changed, &other] {
        let open = [(&*question.key, journal.pin(question))];
        stored.0.extend(journal.next_piece(open.into_iter()));
    }
    let answer = serde_json::value::to_raw_value(&accept(3)).unwrap();
    journal.give("details", journal.pin(&other), answer.get());
    stored.0.extend(journal.next_piece(std::iter::empty()));
    assert!(journal.next_piece(std::iter::empty()).is_none());

    let mut killed = stored.read();
    killed.merge(&[(Cow::Borrowed("menu"), &answer)]);
    for (question, counts) in [(&first, false), (&changed, true), (&other, true)] {
        let (pin, place) = (killed.pin(question), killed.peek(&question.key).expect("an answer").place);
        assert_eq!(killed.answer(place, question, pin).unwrap().is_some(), counts, "{}", question.key);
    }
}

use std::collections::BTreeSet;

use roundtrip_core::wire::{CreateMessageRequestParams, IncludeContext};

use super::*;

fn key() -> PinKey {
    PinKey::new([1; 16])
}

fn url(message: &'static str, url: &str) -> Question {
    Question::new("k", QuestionKind::Url { message: message.into(), url: url.to_owned() })
}

fn sample(max_tokens: u64) -> Question {
    Question::new(
        "k",
        QuestionKind::Sample(Box::new(CreateMessageRequestParams { max_tokens, ..Default::default() })),
    )
}

/// A6: a question's pin changes with its kind, its schema, its wording and its address, and with nothing else.
#[test]
fn pins_tell_questions_apart() {
    let other_form = {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 0 } } });
        let form = Cow::Owned(Definition::new(serde_json::from_value(schema).unwrap()));
        Question::new("k", QuestionKind::Form { message: "?".into(), form })
    };
    let different = [
        form("k", "?"),
        form("k", "??"),
        form("k", "?").identity("i"),
        form("k", "?").identity("j"),
        form("k", "i"),
        other_form,
        url("?", "https://a.example"),
        url("?", "https://b.example"),
        url("??", "https://a.example"),
        url("?h", "ttps://a.example"),
        url("?", "https://a.example").identity("i"),
        url("?", "https://b.example").identity("i"),
        sample(1),
        sample(2),
        sample(2).identity("i"),
        Question::new("k", QuestionKind::Roots),
        Question::new("k", QuestionKind::Roots).identity("i"),
    ];
    let pins: BTreeSet<[u8; 8]> = different.iter().map(|question| *question.pin(&key()).as_bytes()).collect();
    assert_eq!(pins.len(), different.len());
    assert_eq!(form("k", "?").pin(&key()), form("other", "?").pin(&key()), "the key is apart from it");
    assert_eq!(form("k", "a").identity("i").pin(&key()), form("k", "b").identity("i").pin(&key()));
    assert_eq!(
        url("a", "https://a.example/1").identity("i").pin(&key()),
        url("b", "https://a.example/2?n=1").identity("i").pin(&key()),
        "a page of the same origin"
    );
    assert_eq!(sample(1).identity("i").pin(&key()), sample(2).identity("i").pin(&key()));
}

/// A6: in another flow the same question has another pin, so nobody can tell beforehand which questions share one.
#[test]
fn pins_of_two_flows_differ() {
    let other = PinKey::new([2; 16]);
    for question in [form("k", "?"), url("?", "https://a.example"), sample(1)] {
        assert_ne!(question.pin(&key()), question.pin(&other));
    }
    assert_eq!(format!("{other:?}"), "PinKey", "and its secret is not shown");
}

/// A6: pins are the same in every release: a rolling upgrade must not ask everything again.
#[test]
fn pins_are_frozen() {
    let pins = [
        form("k", "How many?"),
        url("Sign in", "https://id.example"),
        sample(7),
        Question::new("k", QuestionKind::Roots),
    ];
    let pins = pins.map(|question| format!("{:?}", question.pin(&key())));
    assert_eq!(pins, ["966fe3a0a2d87aec", "571e6ad3605a3618", "f3b88fd44acaf3a4", "4b47466b505bfd0f"]);
}

/// M7: each kind needs its own capability, and no more.
#[test]
fn each_kind_needs_its_own_capability() {
    let needs = |question: &Question| serde_json::to_value(question.needs()).unwrap();
    assert_eq!(needs(&form("k", "?")), json!({ "elicitation": { "form": {} } }));
    assert_eq!(needs(&url("?", "https://a.example")), json!({ "elicitation": { "url": {} } }));
    assert_eq!(needs(&sample(1)), json!({ "sampling": {} }));
    assert_eq!(needs(&Question::new("k", QuestionKind::Roots)), json!({ "roots": {} }));
    for (context, needed) in [
        (IncludeContext::None, json!({ "sampling": {} })),
        (IncludeContext::ThisServer, json!({ "sampling": { "context": {} } })),
        (IncludeContext::AllServers, json!({ "sampling": { "context": {} } })),
    ] {
        let params = CreateMessageRequestParams { include_context: Some(context), ..Default::default() };
        assert_eq!(needs(&Question::new("k", QuestionKind::Sample(Box::new(params)))), needed);
    }
}

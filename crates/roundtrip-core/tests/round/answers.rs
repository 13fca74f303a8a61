use super::*;

fn read(question: &Question, answer: &Value) -> Result<FullAnswer, String> {
    FullAnswer::read(question, &answer.to_string()).map_err(|unusable| unusable.0)
}

/// M12: an answer is held against its form, and what is wrong is said by field.
#[test]
fn answers_are_held_against_their_form() {
    let question = form("k", "?");
    for (n, wrong) in [
        (json!(0), None),
        (json!(99), None),
        (json!(2.0), None),
        (json!(100), Some("n: must be at most 99")),
        (json!(-1), Some("n: must be at least 0")),
        (json!("1"), Some("n: must be a whole number")),
        (json!(null), Some("n: is required")),
    ] {
        assert_eq!(read(&question, &accept(n.clone())).err().as_deref(), wrong, "{n}");
    }
}

/// M13: an answer of another kind is unusable, and never panics.
#[test]
fn answers_of_another_kind_are_unusable() {
    let questions = [
        form("k", "?"),
        Question::new("k", QuestionKind::Url { message: "?".into(), url: "https://a.example".into() }),
        Question::new("k", QuestionKind::Sample(Box::default())),
        Question::new("k", QuestionKind::Roots),
    ];
    let answers = [
        accept(1),
        json!({ "action": "accept" }),
        json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m" }),
        json!({ "roots": [] }),
    ];
    for (asked, question) in questions.iter().enumerate() {
        for (answered, answer) in answers.iter().enumerate() {
            let fits = asked == answered || (asked == 1 && answered == 0);
            assert_eq!(read(question, answer).is_ok(), fits, "{question:?} {answer}");
        }
        for nonsense in
            [json!({}), json!({ "action": "bogus" }), json!({ "roots": 1 }), json!({ "model": [] })]
        {
            assert!(read(question, &nonsense).is_err(), "{question:?} {nonsense}");
        }
    }
}

/// M14: a refusal is a refusal, whatever it carries.
#[test]
fn refusals_carry_what_they_like() {
    let url = Question::new("k", QuestionKind::Url { message: "?".into(), url: "https://a.example".into() });
    for question in [form("k", "?"), url] {
        for (action, answer) in [("decline", FullAnswer::Declined), ("cancel", FullAnswer::Cancelled)] {
            for content in [json!(null), json!({}), json!({ "n": 1 }), json!({ "n": "wrong", "deep": [{}] })]
            {
                let refusal = json!({ "action": action, "content": content });
                assert_eq!(read(&question, &refusal), Ok(answer.clone()), "{refusal}");
            }
            assert_eq!(read(&question, &json!({ "action": action })), Ok(answer.clone()));
        }
    }
}

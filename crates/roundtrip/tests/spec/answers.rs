//! Answers: which ones count, and what becomes of those that do not (basic, patterns, "Multi Round-Trip Requests").

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use roundtrip::form::{Definition, Problems, check};
use roundtrip::wire::{ElicitSchema, JsonObject};
use roundtrip::{
    Answered, Ask, AskError, Form, Prompt, Question, Reply, Round, Server, State, Tool, ToolError,
};
use serde_json::{Value, json};

use crate::mrtr_server::{Party, both, endpoint, party, question_of_the_model, said_by_the_model};
use crate::support::{Call, Running, accept, headers};

/// M9: a missing answer is asked for again, alone, and the others are kept.
#[tokio::test]
async fn a_missing_answer_is_asked_for_again_alone() {
    let endpoint = endpoint([Tool::new("both", both)]);
    let call = Call::tool("both");
    let first = call.begin(&endpoint).await;
    assert_eq!(first.keys(), ["party", "when"]);
    let second =
        call.answer(&endpoint, &first, json!({ "when": accept(&json!({ "date": "2026-10-03" })) })).await;
    assert_eq!(second.keys(), ["party"]);
    assert_eq!(
        second.told("party"),
        "How many people?",
        "nothing was wrong with an answer that did not come"
    );
    for nothing in [Some(json!({})), Some(Value::Null), None] {
        let again = call.send(&endpoint, second.state(), nothing).await;
        assert_eq!(again.keys(), ["party"]);
    }
    let done = call.answer(&endpoint, &second, json!({ "party": accept(&json!({ "people": 3 })) })).await;
    assert_eq!(done.text(), "3 on 2026-10-03");
}

/// M10: keys that nobody asked for are passed over, on the first round and on every later one.
#[tokio::test]
async fn unknown_keys_are_ignored() {
    let endpoint = endpoint([Tool::new("party", party), Tool::new("plain", async || "plain")]);
    let call = Call::tool("party");
    let noise =
        json!({ "": {}, "Party": accept(&json!({ "people": 9 })), "x": { "anything": ["at", "all"] } });
    let first = call.send(&endpoint, None, Some(noise.clone())).await;
    assert_eq!(first.keys(), ["party"]);
    let mut answers = noise.clone();
    answers["party"] = accept(&json!({ "people": 2 }));
    assert_eq!(call.answer(&endpoint, &first, answers).await.text(), "for 2");
    assert_eq!(Call::tool("plain").send(&endpoint, None, Some(noise)).await.text(), "plain");
}

/// M11: answers that are not a map of results are -32602 and name the field, also for a tool that never asks; null
/// is none.
#[tokio::test]
async fn answers_that_are_not_a_map_of_results_are_refused() {
    let server = Server::new("rounds", "1")
        .tool(Tool::new("party", party))
        .tool(Tool::new("plain", async || "plain"))
        .tool(Tool::new("by_hand", async |round: Round| -> Result<Reply, AskError> {
            let round = round.by_key_alone();
            Ok(match round.answer::<Party>("party")? {
                Some(_) => Reply::text("x"),
                None => round.ask([Question::form::<Party>("party", "?")]),
            })
        }));
    let http = server.into_http().expect("a server");
    let endpoint = http.endpoint().clone();
    let running = Running::start_http(http).await;
    let state = Call::tool("party").begin(&endpoint).await.state().expect("state").to_owned();
    for answers in [
        json!([1]),
        json!([]),
        json!("party"),
        json!(7),
        json!(true),
        json!({ "party": 1 }),
        json!({ "party": null }),
        json!({ "party": [accept(&json!({ "people": 2 }))] }),
        json!({ "party": { "action": "bogus" } }),
        json!({ "party": { "action": "Accept", "content": { "people": 2 } } }),
        json!({ "party": { "action": 1 } }),
    ] {
        for (tool, state) in [("party", None), ("party", Some(&*state)), ("plain", None), ("by_hand", None)] {
            let request = Call::tool(tool).request(state, Some(answers.clone()));
            let answer =
                running.connect().await.post(&headers(&request), request.to_string().as_bytes()).await;
            assert_eq!(answer.refusal(), (200, -32602), "{tool} {answers}");
            assert!(answer.error_message().contains("inputResponses"), "{}", answer.error_message());
        }
    }
    let turn = Call::tool("party").send(&endpoint, Some(&state), Some(Value::Null)).await;
    assert_eq!(turn.keys(), ["party"]);
    assert_eq!(Call::tool("plain").send(&endpoint, None, Some(Value::Null)).await.text(), "plain");
}

/// M12: an answer that breaks its question's schema is asked for again, and the new message says what was wrong.
#[tokio::test]
async fn an_answer_that_breaks_its_schema_is_asked_for_again() {
    let endpoint = endpoint([Tool::new("both", both)]);
    let call = Call::tool("both");
    let first = call.begin(&endpoint).await;
    let when = accept(&json!({ "date": "2026-10-03" }));
    for (wrong, why) in [
        (json!({ "people": 13 }), "people: must be at most 12"),
        (json!({ "people": "2" }), "people: must be a whole number"),
        (json!({ "people": 1.5 }), "people: must be a whole number"),
        (json!({}), "people: is required"),
    ] {
        let answers = json!({ "party": accept(&wrong), "when": when });
        let second = call.answer(&endpoint, &first, answers).await;
        assert_eq!(second.keys(), ["party"], "{wrong}: the other answer is kept");
        assert!(second.told("party").starts_with("How many people?"), "{}", second.told("party"));
        assert!(second.told("party").contains(why), "{}", second.told("party"));
        assert_eq!(
            second.question("party")["params"]["requestedSchema"],
            first.question("party")["params"]["requestedSchema"]
        );
        let third =
            call.answer(&endpoint, &second, json!({ "party": accept(&json!({ "people": 0 })) })).await;
        assert!(third.told("party").contains("at least 1"), "{}", third.told("party"));
        assert!(!third.told("party").contains(why), "only the last answer is told: {}", third.told("party"));
        let done = call.answer(&endpoint, &third, json!({ "party": accept(&json!({ "people": 2 })) })).await;
        assert_eq!(done.text(), "2 on 2026-10-03");
    }
    let bare = call.answer(&endpoint, &first, json!({ "party": { "action": "accept" }, "when": when })).await;
    assert!(bare.told("party").contains("people: is required"));
}

/// M12: by hand it is the same: the answer is not there, and asking again says what was wrong.
#[tokio::test]
async fn by_hand_a_broken_answer_is_asked_for_again() {
    let endpoint = endpoint([Tool::new("by_hand", async |round: Round| -> Result<Reply, ToolError> {
        let Some(party) = round.answer::<Party>("party")? else {
            return Ok(round.ask([Question::form::<Party>("party", "How many people?")]));
        };
        Ok(Reply::text(format!("for {}", party.people)))
    })]);
    let call = Call::tool("by_hand");
    let first = call.begin(&endpoint).await;
    let second = call.answer(&endpoint, &first, json!({ "party": accept(&json!({ "people": 99 })) })).await;
    assert!(second.told("party").contains("people: must be at most 12"), "{}", second.told("party"));
    let done = call.answer(&endpoint, &second, json!({ "party": accept(&json!({ "people": 2 })) })).await;
    assert_eq!(done.text(), "for 2");
}

#[derive(Form)]
struct Numbers {
    whole: i64,
    natural: u64,
    short: f32,
}

/// A form that checks more than its schema can say.
struct Even(i64);

impl Form for Even {
    fn definition() -> &'static Definition {
        static DEFINITION: LazyLock<Definition> = LazyLock::new(|| {
            let number: ElicitSchema = serde_json::from_value(json!({
                "type": "object", "properties": { "number": { "type": "integer" } }, "required": ["number"],
            }))
            .expect("a schema");
            Definition::new(number)
        });
        &DEFINITION
    }

    fn from_content(content: &JsonObject) -> Result<Self, Problems> {
        let number = check(Self::definition().schema(), content)?["number"].as_i64().unwrap_or(1);
        if number % 2 == 0 { Ok(Self(number)) } else { Err(Problems::one("number", "must be even")) }
    }
}

/// M12: an answer that fits the form's schema and not the type behind it is asked for again, with the reason, in line and
/// by hand.
#[tokio::test]
async fn an_answer_that_fits_the_form_and_not_the_type_is_asked_for_again() {
    async fn numbers(ask: Ask) -> Result<String, ToolError> {
        let Numbers { whole, natural, short } = ask.form("numbers", "Which numbers?").await?;
        Ok(format!("{whole} {natural} {short}"))
    }
    async fn even(ask: Ask) -> Result<String, ToolError> {
        let Even(number) = ask.form("even", "An even number?").await?;
        Ok(number.to_string())
    }
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        Ok(match round.answer::<Even>("even")? {
            Some(Even(number)) => Reply::text(number.to_string()),
            None => round.ask([Question::form::<Even>("even", "An even number?")]),
        })
    }
    let endpoint =
        endpoint([Tool::new("numbers", numbers), Tool::new("even", even), Tool::new("by_hand", by_hand)]);
    let fitting = json!({ "whole": -1, "natural": 1, "short": 0.5 });
    let with = |name: &str, value: Value| {
        let mut numbers = fitting.clone();
        numbers[name] = value;
        numbers
    };
    let cases = [
        (
            "numbers",
            "numbers",
            with("whole", json!(1e30)),
            "whole: must be a whole number",
            fitting.clone(),
            "-1 1 0.5",
        ),
        (
            "numbers",
            "numbers",
            with("natural", json!(1e20)),
            "natural: must be a whole number",
            fitting.clone(),
            "-1 1 0.5",
        ),
        (
            "numbers",
            "numbers",
            with("short", json!(1e300)),
            "short: must be a number",
            fitting.clone(),
            "-1 1 0.5",
        ),
        ("even", "even", json!({ "number": 3 }), "number: must be even", json!({ "number": 4 }), "4"),
        ("by_hand", "even", json!({ "number": 3 }), "number: must be even", json!({ "number": 4 }), "4"),
    ];
    for (tool, key, wrong, why, right, text) in cases {
        let call = Call::tool(tool);
        let first = call.begin(&endpoint).await;
        let second = call.answer(&endpoint, &first, json!({ key: accept(&wrong) })).await;
        assert_eq!(second.keys(), [key], "{tool} {wrong}");
        assert!(second.told(key).contains(why), "{tool}: {}", second.told(key));
        let done = call.answer(&endpoint, &second, json!({ key: accept(&right) })).await;
        assert_eq!(done.text(), text);
    }
}

/// A6: consent to a web page under a declared identity is consent to its site: another path keeps it, another origin is asked.
#[tokio::test]
async fn consent_to_a_page_does_not_carry_over_to_another_origin() {
    async fn visit(ask: Ask, State(urls): State<Urls>) -> Result<String, ToolError> {
        let url = urls.lock().expect("a lock").clone();
        ask.url("page", "Sign in", url.clone()).identity("sign in").await?;
        Ok(url)
    }
    type Urls = Arc<std::sync::Mutex<String>>;
    let urls = Urls::default();
    let server = Server::new("pages", "1").state(Arc::clone(&urls)).tool(Tool::new("visit", visit));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("visit");
    let accepted = json!({ "page": { "action": "accept" } });
    let show = |url: &str| *urls.lock().expect("a lock") = url.to_owned();
    show("https://id.example/start?n=1");
    let first = call.begin(&endpoint).await;
    for same in ["https://id.example/other", "https://id.example?n=2", "https://id.example#top"] {
        show(same);
        assert_eq!(call.answer(&endpoint, &first, accepted.clone()).await.text(), same);
    }
    for other in [
        "https://evil.example/start?n=1",
        "http://id.example/start?n=1",
        "https://id.example.evil.example/",
        "https://id.example:444/start",
        "https://id.example@evil.example/",
    ] {
        show(other);
        assert_eq!(call.answer(&endpoint, &first, accepted.clone()).await.keys(), ["page"], "{other}");
    }
    for wrong in ["https://id.example\\@evil.example/", "javascript:alert(1)"] {
        show(wrong);
        assert_eq!(call.answer(&endpoint, &first, accepted.clone()).await.error().0, -32603, "{wrong}");
    }
}

/// M13: an answer of another kind than its question is asked for again.
#[tokio::test]
async fn an_answer_of_the_wrong_kind_is_asked_for_again() {
    let endpoint = endpoint([
        Tool::new("form", party),
        Tool::new("url", async |ask: Ask| ask.url("party", "?", "https://x.example").await.map(|()| "seen")),
        Tool::new("sample", async |ask: Ask| {
            ask.sample("party", question_of_the_model()).await.map(|_| "said")
        }),
        Tool::new("roots", async |ask: Ask| ask.roots("party").await.map(|roots| roots[0].uri.clone())),
    ]);
    let form = accept(&json!({ "people": 2 }));
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    let cases = [
        ("form", form.clone(), "for 2", vec![said_by_the_model(), roots.clone(), json!({})]),
        ("url", json!({ "action": "accept" }), "seen", vec![said_by_the_model(), roots.clone(), json!({})]),
        ("sample", said_by_the_model(), "said", vec![form.clone(), roots.clone(), json!({})]),
        ("roots", roots, "file:///a", vec![form, said_by_the_model(), json!({})]),
    ];
    for (tool, right, text, wrong) in cases {
        let call = Call::tool(tool);
        let mut turn = call.begin(&endpoint).await;
        for wrong in wrong {
            turn = call.answer(&endpoint, &turn, json!({ "party": wrong })).await;
            assert_eq!(turn.keys(), ["party"], "{tool} {wrong}");
        }
        assert_eq!(call.answer(&endpoint, &turn, json!({ "party": right })).await.text(), text);
    }
}

/// M14: decline and cancel are answers, whatever content they carry: the handler sees which, once, and decides.
#[tokio::test]
async fn refusals_are_answers_also_with_content() {
    async fn three_way(ask: Ask) -> Result<String, ToolError> {
        let said = match ask.form::<Party>("party", "?").answered().await? {
            Answered::Accepted(party) => format!("accepted {}", party.people),
            Answered::Declined => "declined".into(),
            Answered::Cancelled => "cancelled".into(),
        };
        ask.confirm("then", "And now?").await?;
        Ok(said)
    }
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        Ok(match round.answered::<Party>("party")? {
            None => round.ask([Question::form::<Party>("party", "?")]),
            Some(Answered::Accepted(_)) => Reply::text("accepted"),
            Some(Answered::Declined) => Reply::text("declined"),
            Some(Answered::Cancelled) => Reply::text("cancelled"),
        })
    }
    let endpoint = endpoint([Tool::new("three_way", three_way), Tool::new("by_hand", by_hand)]);
    let contents = [
        None,
        Some(Value::Null),
        Some(json!({})),
        Some(json!("no, thanks")),
        Some(json!([1])),
        Some(json!({ "people": 2 })),
        Some(json!({ "people": [{}] })),
    ];
    for (action, seen) in [("decline", "declined"), ("cancel", "cancelled")] {
        for content in &contents {
            let mut refusal = json!({ "action": action });
            if let Some(content) = content {
                refusal["content"] = content.clone();
            }
            let call = Call::tool("three_way");
            let first = call.begin(&endpoint).await;
            let second = call.answer(&endpoint, &first, json!({ "party": refusal })).await;
            assert_eq!(second.keys(), ["then"], "{refusal}: not asked again");
            // A second thought comes too late.
            let answers = json!({ "then": accept(&json!({ "confirm": true })), "party": accept(&json!({ "people": 2 })) });
            assert_eq!(call.answer(&endpoint, &second, answers).await.text(), seen, "{refusal}");
            let call = Call::tool("by_hand");
            let first = call.begin(&endpoint).await;
            assert_eq!(call.answer(&endpoint, &first, json!({ "party": refusal })).await.text(), seen);
        }
    }
}

/// M18: only an answer to a question that this flow has asked counts: one sent ahead, with no state or beside the
/// state of another question, is asked for properly.
#[tokio::test]
async fn answers_to_questions_that_were_not_asked_do_not_count() {
    async fn in_turn(ask: Ask) -> Result<String, ToolError> {
        let party: Party = ask.form("party", "How many people?").await?;
        let sure = ask.confirm("sure", format!("{} people, is that right?", party.people)).await?;
        Ok(format!("{} {sure}", party.people))
    }
    let endpoint = endpoint([Tool::new("in_turn", in_turn)]);
    let call = Call::tool("in_turn");
    let seeded =
        json!({ "party": accept(&json!({ "people": 2 })), "sure": accept(&json!({ "confirm": true })) });
    let first = call.send(&endpoint, None, Some(seeded.clone())).await;
    assert_eq!(first.keys(), ["party"], "nothing has been asked yet");
    let second = call.answer(&endpoint, &first, seeded).await;
    assert_eq!(second.keys(), ["sure"], "the confirmation was not asked before");
    assert_eq!(second.told("sure"), "2 people, is that right?");
    // An answer that has counted is not replaced.
    let third =
        json!({ "party": accept(&json!({ "people": 12 })), "sure": accept(&json!({ "confirm": true })) });
    assert_eq!(call.answer(&endpoint, &second, third).await.text(), "2 true");
}

/// M18: approved as it was worded, and no other way: when the question changes between rounds, its answer does not
/// count for the new one.
#[tokio::test]
async fn an_answer_counts_only_for_the_question_as_it_was_asked() {
    let price = Arc::new(AtomicUsize::new(100));
    async fn buy(State(price): State<Arc<AtomicUsize>>, ask: Ask) -> Result<String, ToolError> {
        let price = price.load(Ordering::SeqCst);
        let sure = ask.confirm("sure", format!("Pay {price}?")).await?;
        Ok(format!("{price} {sure}"))
    }
    let server = Server::new("rounds", "1").state(Arc::clone(&price)).tool(Tool::new("buy", buy));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("buy");
    let yes = json!({ "sure": accept(&json!({ "confirm": true })) });
    let first = call.begin(&endpoint).await;
    price.store(150, Ordering::SeqCst);
    let second = call.answer(&endpoint, &first, yes.clone()).await;
    assert_eq!(second.told("sure"), "Pay 150?", "100 was approved, 150 was not");
    assert_eq!(call.answer(&endpoint, &second, yes).await.text(), "150 true");
}

/// M21: a flow that never comes to an end is ended after 32 rounds that asked, with a tool error that says so.
#[tokio::test]
async fn a_flow_that_never_converges_ends() {
    async fn endless(ask: Ask) -> Result<String, ToolError> {
        for turn in 0.. {
            ask.confirm(format!("more-{turn}"), "More?").await?;
        }
        Ok("never".into())
    }
    async fn prompt(ask: Ask) -> Result<String, AskError> {
        for turn in 0.. {
            ask.confirm(format!("more-{turn}"), "More?").await?;
        }
        Ok("never".into())
    }
    let endpoint = Server::new("rounds", "1")
        .tool(Tool::new("endless", endless))
        .prompt(Prompt::new("endless", prompt))
        .build()
        .expect("a server");
    for call in [Call::tool("endless"), Call::prompt("endless")] {
        let mut turn = call.begin(&endpoint).await;
        for round in 0..31 {
            assert_eq!(turn.keys(), [format!("more-{round}")]);
            let answer = json!({ format!("more-{round}"): accept(&json!({ "confirm": true })) });
            turn = call.answer(&endpoint, &turn, answer).await;
        }
        assert_eq!(turn.keys(), ["more-31"], "32 rounds may ask");
        turn = call.answer(&endpoint, &turn, json!({ "more-31": accept(&json!({ "confirm": true })) })).await;
        let told =
            if call.request(None, None)["method"] == "tools/call" { turn.failure() } else { turn.error().1 };
        assert!(told.contains("32"), "{told}");
    }
}

/// M21: an answer that never fits is no way around the cap, and the cap can be set.
#[tokio::test]
async fn answers_that_never_fit_end_too() {
    let server = Server::new("rounds", "1").max_rounds(3).tool(Tool::new("party", party));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("party");
    let mut turn = call.begin(&endpoint).await;
    for _ in 0..2 {
        turn = call.answer(&endpoint, &turn, json!({ "party": accept(&json!({ "people": 99 })) })).await;
        assert_eq!(turn.keys(), ["party"]);
    }
    turn = call.answer(&endpoint, &turn, json!({ "party": accept(&json!({ "people": 99 })) })).await;
    assert!(turn.failure().contains('3'), "{}", turn.failure());
}

/// M24: answers and remembered values of all earlier rounds are there in the last, though the client sends only the
/// newest answers.
#[tokio::test]
async fn earlier_answers_stay_available() {
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        let seen: u32 = round.state()?.unwrap_or_default();
        round.set_state(&(seen + 1))?;
        let mut people = Vec::new();
        for key in ["a", "b", "c"] {
            match round.answer::<Party>(key)? {
                Some(party) => people.push(party.people.to_string()),
                None => return Ok(round.ask([Question::form::<Party>(key, "How many?")])),
            }
        }
        Ok(Reply::text(format!("{} in round {}, {seen} before", people.join(" "), round.number())))
    }
    let endpoint = endpoint([Tool::new("by_hand", by_hand)]);
    let call = Call::tool("by_hand");
    let mut turn = call.begin(&endpoint).await;
    for (key, people) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(turn.keys(), [key]);
        turn = call.answer(&endpoint, &turn, json!({ key: accept(&json!({ "people": people })) })).await;
    }
    assert_eq!(turn.text(), "1 2 3 in round 4, 3 before");
}

//! Handlers: what they are given, what they give back, and what comes of it.

use std::sync::{Arc, Mutex};

use roundtrip::client::{PeerIncompatible, RootsRequest};
use roundtrip::wire::{CreateMessageResult, Role, Root, SamplingContent};
use roundtrip::{Client, Error, FormRequest, SampleRequest, UrlRequest};
use serde_json::json;
use tokio::sync::Barrier;

use super::script::{Answer, again, asks, done, page, party, replies, roots, sampling, scripted};
use crate::fixture::text;

async fn two(form: FormRequest) -> Result<roundtrip::FormAnswer, Box<dyn std::error::Error + Send + Sync>> {
    Ok(form.accept(json!({ "people": 2 }))?)
}

fn says(words: &str) -> CreateMessageResult {
    CreateMessageResult {
        role: Role::Assistant,
        content: SamplingContent::from(words),
        model: "m".to_owned(),
        stop_reason: None,
        meta: None,
    }
}

/// C1: every question of a round is answered before the retry, and the handlers run side by side.
#[tokio::test]
async fn all_questions_of_a_round_are_answered_side_by_side() {
    let questions = [("a", party()), ("b", page()), ("c", sampling()), ("d", roots())];
    let (client, log) = replies([asks(questions, Some("s")), done()]);
    // Each waits for the other two: one after the other would wait for ever.
    let together = Arc::new(Barrier::new(3));
    let barrier = || Arc::clone(&together);
    let (for_form, for_url, for_sample) = (barrier(), barrier(), barrier());
    let client = client
        .on_form(move |form: FormRequest| {
            let together = Arc::clone(&for_form);
            async move {
                together.wait().await;
                form.accept(json!({ "people": 2 }))
            }
        })
        .on_url(move |url: UrlRequest| {
            let together = Arc::clone(&for_url);
            async move {
                together.wait().await;
                url.consent()
            }
        })
        .on_sample(move |_: SampleRequest| {
            let together = Arc::clone(&for_sample);
            async move {
                together.wait().await;
                says("!")
            }
        })
        .roots(["file:///projects"]);
    assert_eq!(text(&client.call_tool("book", ()).await.expect("a result")), "done");
    let answers = json!({
        "a": { "action": "accept", "content": { "people": 2, "window": true } },
        "b": { "action": "accept" },
        "c": { "role": "assistant", "content": { "type": "text", "text": "!" }, "model": "m" },
        "d": { "roots": [{ "uri": "file:///projects" }] },
    });
    assert_eq!(log.params(1)["inputResponses"], answers);
    assert_eq!(log.len(), 2);
}

/// C10: a handler sees who asks, for what call, under which key and in which round.
#[tokio::test]
async fn a_handler_sees_where_a_question_comes_from() {
    let first = asks([("party", party())], None);
    let (client, _log) = replies([first.clone(), again("s"), first, done()]);
    let seen: Arc<Mutex<Vec<FormRequest>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let client = client.on_form(move |form: FormRequest| {
        noted.lock().expect("seen").push(form.clone());
        async move { form.decline() }
    });
    client.get_prompt("greeting").await.expect_err("no prompt's result, but that is not what is tested");
    let seen = seen.lock().expect("seen");
    let rounds: Vec<u32> = seen.iter().map(|form| form.origin.round).collect();
    assert_eq!(rounds, [1, 3], "the second round asked nothing");
    let form = &seen[0];
    assert_eq!(form.origin.server.as_ref().map(|server| &*server.name), Some("bookings"));
    assert_eq!((form.origin.method, form.origin.target.as_deref()), ("prompts/get", Some("greeting")));
    assert_eq!((&*form.origin.key, &*form.message), ("party", "How many people?"));
    assert!(form.schema.property("people").is_some());
}

/// C10: declining and cancelling are answers, and carry nothing else.
#[tokio::test]
async fn declining_and_cancelling_are_answers() {
    let (client, log) = replies([asks([("a", party()), ("b", page())], None), done()]);
    let client = client.on_form(async |form| form.decline()).on_url(async |url| url.cancel());
    client.call_tool("book", ()).await.expect("a result");
    let answers = json!({ "a": { "action": "decline" }, "b": { "action": "cancel" } });
    assert_eq!(log.params(1)["inputResponses"], answers);
}

#[derive(Debug, thiserror::Error)]
#[error("nobody is at the keyboard")]
struct Nobody;

/// C10: a handler that fails ends the call with its error, and what else was being asked ends too.
#[tokio::test]
async fn a_failing_handler_ends_the_call_with_its_error() {
    let (client, log) = replies([asks([("a", party()), ("b", page())], None)]);
    let client = client
        .on_form(async |_: FormRequest| std::future::pending::<roundtrip::FormAnswer>().await)
        .on_url(async |_: UrlRequest| Err::<roundtrip::UrlAnswer, _>(Nobody));
    let error = client.call_tool("book", ()).await.expect_err("nobody");
    let Error::Handler(why) = &error else { panic!("the handler's, not {error:?}") };
    assert!(why.downcast_ref::<Nobody>().is_some());
    assert_eq!(error.to_string(), "nobody is at the keyboard");
    assert_eq!(log.len(), 1);
    // One of our own errors stays what it is.
    let (client, _log) = replies([asks([("a", party())], None)]);
    let client = client.on_form(async |_: FormRequest| {
        Err::<roundtrip::FormAnswer, _>(Error::from(PeerIncompatible::NoChanges))
    });
    assert!(matches!(client.call_tool("book", ()).await, Err(Error::PeerIncompatible(_))));
}

/// C11: what does not fit the form is an error where it is typed, which a handler can show and ask again.
#[tokio::test]
async fn a_handler_can_ask_again_until_the_answer_fits() {
    let (client, log) = replies([asks([("party", party())], None), done()]);
    let client = client.on_form(async |form: FormRequest| {
        let misfit = form.accept(json!({ "people": 13 })).expect_err("too many");
        assert!(misfit.to_string().contains("people: must be at most 12"), "{misfit}");
        assert!(form.accept("two").is_err());
        form.accept(json!({ "people": 12, "unasked": 1 }))
    });
    client.call_tool("book", ()).await.expect("a result");
    let content = json!({ "people": 12, "window": true });
    assert_eq!(log.params(1)["inputResponses"]["party"]["content"], content);
}

/// C11: an answer that does not fit ends the call where it is given all the same; nothing is sent.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_sent() {
    let (client, log) = replies([asks([("party", party())], None)]);
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "people": "many" })));
    let error = client.call_tool("book", ()).await.expect_err("no number");
    assert!(matches!(&error, Error::Handler(why) if why.to_string().contains("whole number")), "{error:?}");
    let (client, _) = replies([asks([("r", roots())], None)]);
    let elsewhere = || Root { uri: "https://x.example".to_owned(), ..Root::default() };
    let client = client.on_roots(move |_: RootsRequest| async move { vec![elsewhere()] });
    let error = client.call_tool("book", ()).await.expect_err("no folder");
    assert!(matches!(&error, Error::ApiMisuse(why) if why.to_string().contains("file://")), "{error:?}");
    assert_eq!(log.len(), 1);
}

/// C10: functions are handlers as well as closures, and answers may come with or without a `Result`.
#[tokio::test]
async fn functions_are_handlers() {
    let (client, log) = replies([asks([("party", party())], None), done()]);
    client.on_form(two).call_tool("book", ()).await.expect("a result");
    assert_eq!(log.params(1)["inputResponses"]["party"]["action"], "accept");
}

/// C13: a hook sees every round, those that ask nothing included, and can refuse one before anybody is asked.
#[tokio::test(start_paused = true)]
async fn a_hook_sees_every_round_and_can_refuse_it() {
    let respond = |number: usize, _: &serde_json::Value| {
        Answer::Result(match number {
            0 => again("s"),
            1 => asks([("party", party())], None),
            _ => asks([("page", page())], None),
        })
    };
    let (client, log) = scripted(respond);
    let client = client
        .on_form(two)
        .on_url(async |_: UrlRequest| -> roundtrip::UrlAnswer { panic!("it was refused") });
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let call = client.call_tool("book", ()).on_round(move |round| {
        let keys: Vec<&str> = round.questions().map(|question| question.key()).collect();
        noted.lock().expect("seen").push(format!("{} {}", round.round(), keys.join(" ")));
        if round.questions().any(|question| question.url().is_some()) {
            return Err("no pages, says the policy");
        }
        Ok(())
    });
    let error = call.await.expect_err("refused");
    assert!(matches!(&error, Error::Handler(why) if why.to_string().contains("policy")), "{error:?}");
    assert_eq!(*seen.lock().expect("seen"), ["1 ", "2 party", "3 page"]);
    assert_eq!(log.len(), 3);
}

/// C10: what is wrong with the roots is told when the client is used.
#[tokio::test]
async fn roots_that_are_no_folders_are_misuse() {
    let (client, log) = replies([done()]);
    let client: Client = client.roots(["https://x.example"]);
    let error = client.call_tool("book", ()).await.expect_err("no folder");
    assert!(matches!(&error, Error::ApiMisuse(why) if why.to_string().contains("`roots`")), "{error:?}");
    assert_eq!(log.len(), 0);
}

/// C1: a conversation in which a tool use lacks its result ends the call before the handler of the model sees it.
#[tokio::test]
async fn a_conversation_with_a_broken_tool_use_reaches_no_handler() {
    let call = json!({ "type": "tool_use", "id": "a", "name": "look", "input": {} });
    let result = json!({ "type": "tool_result", "toolUseId": "a", "content": [] });
    for last in
        [json!([result, { "type": "text", "text": "?" }]), json!([]), json!({ "type": "text", "text": "?" })]
    {
        let mut question = sampling();
        question["params"]["messages"] =
            json!([{ "role": "assistant", "content": [call] }, { "role": "user", "content": last }]);
        let (client, log) = replies([asks([("model", question)], Some("s"))]);
        let client = client.sampling_tools().on_sample(async |asked: SampleRequest| -> CreateMessageResult {
            panic!("asked {:?}", asked.params)
        });
        let error = client.call_tool("book", ()).await.expect_err("a broken conversation");
        let Error::PeerMisbehaved(said) = &error else { panic!("misbehaved, not {error:?}") };
        assert!(said.to_string().contains("`model` (sampling): message 2"), "{said}");
        assert_eq!(log.len(), 1, "nothing is answered");
    }
}

//! Old servers that ask by requests of their own: the client's handlers answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::{ClientLimits, Misfit, RootsRequest, ServerRejection};
use roundtrip::wire::{CreateMessageResult, Role, Root, SamplingContent};
use roundtrip::{Client, Error, FormAnswer, FormRequest, UrlRequest};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::{Old, Reply, Seen, Sender, empty, form, json_reply, slow_json, stream};
use crate::fixture::text;

pub(super) async fn ada(form: FormRequest) -> Result<FormAnswer, Misfit> {
    form.accept(json!({ "name": "Ada" }))
}

/// A tool that runs beside its reply, and says what it has to say on the call's own stream.
pub(super) fn tool<F, Fut>(run: F) -> impl Fn(&Arc<Old>, &Seen) -> Option<Reply> + Send + Sync
where
    F: Fn(Arc<Old>, Seen, Sender) -> Fut + Send + Sync,
    Fut: Future<Output = ()> + Send + 'static,
{
    move |old, seen| {
        (seen.method() == "tools/call").then(|| {
            let (sender, reply) = stream();
            tokio::spawn(run(Arc::clone(old), seen.clone(), sender));
            reply
        })
    }
}

/// L7: a form asked in the midst of a call is answered by the client's handler: checked, with its defaults, and with who
/// asks for what.
#[tokio::test]
async fn a_form_is_answered_by_the_handler_it_always_is() {
    let (client, old) = Old::start(tool(|old, seen, sender| async move {
        sender.message(&form(7, "Who are you?"));
        let answer = old.response(&json!(7)).await;
        sender.message(&seen.says(&answer["result"].to_string()));
    }))
    .await;
    let origins: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&origins);
    let client = client.on_form(move |form: FormRequest| {
        let server = form.origin.server.as_ref().map(|server| server.name.clone());
        let line =
            format!("{server:?} {} {:?} {}", form.origin.method, form.origin.target, form.origin.round);
        noted.lock().expect("origins").push(line);
        ada(form)
    });
    let result = client.call_tool("ask", ()).await.expect("a result");
    assert_eq!(text(&result), r#"{"action":"accept","content":{"name":"Ada","size":"small"}}"#);
    assert_eq!(*origins.lock().expect("origins"), [r#"Some("old") tools/call Some("ask") 1"#]);
    let greeted = old.wait(|seen| seen.method() == "initialize").await;
    assert_eq!(greeted.body["params"]["capabilities"], json!({ "elicitation": { "form": {} } }));
    let called = old.seen().iter().filter(|seen| seen.method() == "tools/call").count();
    assert_eq!(called, 1, "the call is made once, whatever the rounds");
}

/// L7: everything a server can ask is asked together and answered together.
#[tokio::test]
async fn questions_asked_together_are_one_round() {
    let sampling = json!({
        "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage",
        "params": { "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 9 },
    });
    let (client, _old) = Old::speaking(
        "2025-06-18",
        tool(move |old, seen, sender| {
            let sampling = sampling.clone();
            async move {
                sender.message(&form("f", "Who?"));
                sender.message(&sampling);
                sender.message(&json!({ "jsonrpc": "2.0", "id": "r", "method": "roots/list" }));
                let mut answers = Vec::new();
                for id in ["f", "s", "r"] {
                    answers.push(old.response(&json!(id)).await["result"].clone());
                }
                sender.message(&seen.says(&json!(answers).to_string()));
            }
        }),
    )
    .await;
    let rounds = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&rounds);
    let client = client
        .on_form(ada)
        .on_sample(async |_| {
            let content = serde_json::from_value::<SamplingContent>(json!([{ "type": "text", "text": "!" }]));
            let content = content.expect("content");
            CreateMessageResult {
                role: Role::Assistant,
                content,
                model: "m".into(),
                stop_reason: None,
                meta: None,
            }
        })
        .on_roots(async |_: RootsRequest| vec![Root { uri: "file:///x".into(), ..Root::default() }]);
    let call = client.call_tool("ask", ()).on_round(move |_| {
        *counted.lock().expect("rounds") += 1;
        Ok::<(), Error>(())
    });
    let answers: Value = serde_json::from_str(&text(&call.await.expect("a result"))).expect("json");
    assert_eq!(answers[0]["content"]["name"], "Ada");
    assert_eq!(
        answers[1]["content"],
        json!({ "type": "text", "text": "!" }),
        "one thing is said as one thing"
    );
    assert_eq!(answers[2], json!({ "roots": [{ "uri": "file:///x" }] }));
    assert_eq!(*rounds.lock().expect("rounds"), 1);
}

/// L7: several rounds of one call, and a user who declines.
#[tokio::test]
async fn rounds_follow_each_other_and_a_decline_is_an_answer() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        let mut actions = Vec::new();
        for number in 1..=3 {
            let id = format!("{}-{number}", seen.body["id"]);
            sender.message(&form(id.clone(), &format!("number {number}")));
            actions.push(old.response(&json!(id)).await["result"]["action"].clone());
        }
        sender.message(&seen.says(&json!(actions).to_string()));
    }))
    .await;
    let client = client.on_form(async |form: FormRequest| match &*form.message {
        "number 1" => form.accept(json!({ "name": "Ada" })),
        "number 2" => Ok(form.decline()),
        _ => Ok(form.cancel()),
    });
    let result = client.call_tool("ask", ()).await.expect("a result");
    assert_eq!(text(&result), r#"["accept","decline","cancel"]"#);
    let error = client.call_tool("ask", ()).max_rounds(2).await.expect_err("three rounds");
    assert!(matches!(error, Error::GaveUp(_)), "{error}");
}

/// L7: a question that comes on the stream that belongs to no call is the call's where there is one call.
#[tokio::test]
async fn a_question_beside_the_call_is_the_calls_question() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        let general = old.general.lock().expect("general").clone().expect("a stream beside the call");
        general.message(&form("beside", "Who?"));
        let answer = old.response(&json!("beside")).await;
        sender.message(&seen.says(&answer["result"]["content"]["name"].to_string()));
    }))
    .await;
    let rounds = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&rounds);
    let call = client.on_form(ada).call_tool("ask", ()).on_round(move |round| {
        seen.lock().expect("rounds").extend(round.questions().map(|question| question.key().to_owned()));
        Ok::<(), Error>(())
    });
    assert_eq!(text(&call.await.expect("a result")), "\"Ada\"");
    assert_eq!(*rounds.lock().expect("rounds"), ["elicitation-1"]);
}

/// L7: a server may hold its whole answer back until a question beside the call is answered.
#[tokio::test]
async fn a_question_may_come_before_the_first_byte_of_an_answer() {
    let (client, old) = Old::start(|old, seen| {
        (seen.method() == "tools/call").then(|| {
            let (old, seen) = (Arc::clone(old), seen.clone());
            // A body that begins once the question is answered: until then the client has not even a status to go by.
            slow_json(async move {
                let general = old.general.lock().expect("general").clone().expect("a stream beside the call");
                general.message(&form("beside", "Who?"));
                let answer = old.response(&json!("beside")).await;
                seen.says(&answer["result"]["content"]["name"].to_string())
            })
        })
    })
    .await;
    let result = client.on_form(ada).call_tool("ask", ()).timeout(Duration::from_secs(5)).await;
    assert_eq!(text(&result.expect("a result")), "\"Ada\"");
    assert_eq!(old.posted().iter().filter(|method| *method == "tools/call").count(), 1);
}

/// L6: a call that is given up before its answer begins is cancelled at the server all the same.
#[tokio::test]
async fn a_call_is_cancelled_before_its_answer_begins() {
    let (client, old) =
        Old::start(|_, seen| (seen.tool() == "hang").then(|| slow_json(std::future::pending()))).await;
    let id = tokio::select! {
        _ = client.call_tool("hang", ()).into_future() => panic!("nobody answers"),
        seen = old.wait(|seen| seen.tool() == "hang") => seen.body["id"].clone(),
    };
    old.wait(|seen| seen.method() == "notifications/cancelled" && seen.body["params"]["requestId"] == id)
        .await;
}

/// L7: what is asked outside of any call is answered by the handlers; a ping is answered by the client itself, and what it
/// does not know is refused.
#[tokio::test]
async fn outside_of_any_call_the_handlers_answer() {
    let (client, old) = Old::start(|_, _| None).await;
    let client = client.on_form(ada);
    client.list_tools().await.expect("tools");
    let general = old.general.lock().expect("general").clone().expect("a stream");
    general.message(&form(1, "Who?"));
    general.message(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    general.message(&json!({ "jsonrpc": "2.0", "id": 3, "method": "roots/list" }));
    general.message(&json!({ "jsonrpc": "2.0", "id": 4, "method": "no/such" }));
    general.message(&json!({ "jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {
        "mode": "url", "elicitationId": "e", "url": "https://x.example", "message": "go" } }));
    assert_eq!(old.response(&json!(1)).await["result"]["content"]["name"], "Ada");
    assert_eq!(old.response(&json!(2)).await["result"], json!({}));
    assert_eq!(old.response(&json!(3)).await["error"]["code"], -32601);
    assert_eq!(old.response(&json!(4)).await["error"]["code"], -32601);
    assert_eq!(old.response(&json!(5)).await["error"]["code"], -32602, "a mode that was not declared");
}

/// Z1: a handler that panics, at once or later, leaves no server waiting, and takes no place for good.
#[tokio::test]
async fn a_handler_that_panics_outside_of_any_call_is_an_error_to_the_server() {
    let (client, old) = Old::start(|_, _| None).await;
    let mut limits = ClientLimits::default();
    limits.questions_outside_calls = 1;
    let client = client.limits(limits).on_form(|form: FormRequest| {
        assert_ne!(form.message, "at once");
        async move {
            tokio::task::yield_now().await;
            assert_ne!(form.message, "later");
            form.accept(json!({ "name": "Ada" }))
        }
    });
    client.list_tools().await.expect("tools");
    let general = old.general.lock().expect("general").clone().expect("a stream");
    for (id, message) in ["at once", "later"].into_iter().enumerate() {
        general.message(&form(id, message));
        assert_eq!(old.response(&json!(id)).await["error"]["code"], -32603, "{message}");
    }
    general.message(&form(2, "Who?"));
    assert_eq!(old.response(&json!(2)).await["result"]["content"]["name"], "Ada");
}

/// L7: a client that did not offer to answer is not asked; the server is told, and the call goes on.
#[tokio::test]
async fn a_server_that_asks_what_was_not_declared_is_told_so() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        sender.message(&form(1, "Who?"));
        sender.message(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
        let (first, second) = (old.response(&json!(1)).await, old.response(&json!(2)).await);
        sender.message(&seen.says(&format!("{} {}", first["error"]["code"], second["result"])));
    }))
    .await;
    let result = client.call_tool("ask", ()).await.expect("a result");
    assert_eq!(text(&result), "-32601 {}");
}

/// L7: where the handler fails, the call ends with its error, and the server learns that both are over.
#[tokio::test]
async fn a_handler_that_fails_ends_the_call_at_the_server_too() {
    let (client, old) = Old::start(tool(|_, _, sender| async move {
        sender.message(&form("q", "Who?"));
        sender.0.closed().await;
    }))
    .await;
    let client = client.on_form(async |_| Err::<FormAnswer, _>(std::io::Error::other("no terminal")));
    let error = client.call_tool("ask", ()).await.expect_err("no terminal");
    assert!(matches!(&error, Error::Handler(why) if why.to_string() == "no terminal"), "{error:?}");
    let called = old.wait(|seen| seen.method() == "tools/call").await;
    let cancelled = old.wait(|seen| seen.method() == "notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], called.body["id"]);
    assert!(old.response(&json!("q")).await["error"]["code"].is_i64());
}

/// L7: dropping a call while the user thinks, and dropping one that runs, both cancel it at the server: hanging up does not
/// in these eras.
#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_by_a_notification() {
    let (client, old) = Old::start(tool(|_, seen, sender| async move {
        if seen.tool() == "ask" {
            sender.message(&form("q", "Who?"));
        }
        sender.0.closed().await;
    }))
    .await;
    let thinking = Arc::new(Notify::new());
    let begun = Arc::clone(&thinking);
    let client = client.on_form(move |_: FormRequest| {
        begun.notify_one();
        std::future::pending::<FormAnswer>()
    });
    tokio::select! {
        _ = client.call_tool("ask", ()).into_future() => panic!("nobody answers"),
        () = thinking.notified() => {}
    }
    old.wait(|seen| seen.method() == "notifications/cancelled").await;
    old.response(&json!("q")).await;

    let error = client.call_tool("hang", ()).timeout(Duration::from_millis(50)).await.expect_err("no answer");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    let hung = old.wait(|seen| seen.tool() == "hang").await;
    let id = &hung.body["id"];
    old.wait(|seen| seen.method() == "notifications/cancelled" && seen.body["params"]["requestId"] == *id)
        .await;
}

/// L7: human time does not count into the timeout of a request, in this era either.
#[tokio::test]
async fn the_time_people_think_is_not_the_requests() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        sender.message(&form(1, "Who?"));
        old.response(&json!(1)).await;
        sender.message(&seen.says("thanks"));
    }))
    .await;
    let client = client.timeout(Duration::from_secs(3)).on_form(async |form: FormRequest| {
        tokio::time::sleep(Duration::from_millis(3500)).await;
        ada(form).await
    });
    assert_eq!(text(&client.call_tool("ask", ()).await.expect("in time")), "thanks");
}

/// L7: a server that wonders whether we are there is answered while people think, and what it says meanwhile is kept.
#[tokio::test]
async fn a_ping_is_answered_while_people_think() {
    let (thinking, pinged) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, done) = (Arc::clone(&thinking), Arc::clone(&pinged));
    let (client, _old) = Old::start(tool(move |old, seen, sender| {
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
        async move {
            sender.message(&form("q", "Who?"));
            begun.notified().await;
            sender.message(&json!({ "jsonrpc": "2.0", "method": "notifications/message",
                                    "params": { "level": "info", "data": "still here" } }));
            sender.message(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
            old.response(&json!("p")).await;
            done.notify_one();
            old.response(&json!("q")).await;
            sender.message(&seen.says("thanks"));
        }
    }))
    .await;
    let client = client.on_form(move |form: FormRequest| {
        let (thinking, pinged) = (Arc::clone(&thinking), Arc::clone(&pinged));
        async move {
            thinking.notify_one();
            pinged.notified().await;
            ada(form).await
        }
    });
    let logs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&logs);
    let call =
        client.call_tool("ask", ()).on_log(move |log| seen.lock().expect("logs").push(log.data.to_value()));
    assert_eq!(text(&call.await.expect("a result")), "thanks");
    assert_eq!(*logs.lock().expect("logs"), ["still here"]);
}

/// L7: an error that wants a web page visited first becomes a question, and the call is made again once the user agrees.
#[tokio::test]
async fn a_page_to_be_visited_first_is_a_question() {
    let required = |seen: &Seen| {
        if seen.tool() == "sly" {
            let data = json!({ "elicitations": [form(1, "a form where only pages may be")["params"]] });
            let error = json!({ "code": -32042, "message": "first this", "data": data });
            return json_reply(200, &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }));
        }
        let page = json!({ "mode": "url", "elicitationId": "e-1", "url": "https://x.example/in", "message": "log in" });
        let error = json!({ "code": -32042, "message": "first this", "data": { "elicitations": [page] } });
        json_reply(200, &json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }))
    };
    let (client, old) = Old::start(move |old, seen| {
        let first = old.seen().iter().filter(|seen| seen.method() == "tools/call").count() == 1;
        (seen.method() == "tools/call" && (first || seen.tool() != "a")).then(|| required(seen))
    })
    .await;
    let agrees = client.clone().on_url(async |page: UrlRequest| {
        assert_eq!((&*page.url, &*page.message), ("https://x.example/in", "log in"));
        page.consent()
    });
    assert_eq!(text(&agrees.call_tool("a", ()).await.expect("a result")), "done");
    assert_eq!(old.seen().iter().filter(|seen| seen.tool() == "a").count(), 2);

    let refuses = client.clone().on_url(async |page: UrlRequest| page.decline());
    let error = refuses.call_tool("stubborn", ()).await.expect_err("the user refuses");
    assert!(
        matches!(&error, Error::Rejected(ServerRejection::Declined(error)) if error.code == -32042),
        "{error:?}"
    );
    let error = agrees.on_form(ada).call_tool("sly", ()).await.expect_err("not a page");
    assert!(matches!(&error, Error::Rejected(error) if error.error().code == -32042), "{error:?}");
    let plain: Client = client;
    let error = plain.call_tool("stubborn", ()).await.expect_err("nobody to ask");
    assert!(matches!(&error, Error::Rejected(error) if error.error().code == -32042), "{error:?}");
}

/// L7: progress and log messages reach whoever asked for them, before and after a question.
#[tokio::test]
async fn progress_goes_on_across_questions_and_the_level_is_set_once() {
    let (client, old) = Old::start(tool(|old, seen, sender| async move {
        let token = &seen.body["params"]["_meta"]["progressToken"];
        let progress = |step: u32| {
            json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": step } })
        };
        sender.message(&progress(1));
        sender.message(&form(seen.body["id"].clone(), "an id that the client uses too"));
        old.response(&seen.body["id"]).await;
        sender.message(&progress(2));
        sender.message(&json!({ "jsonrpc": "2.0", "method": "notifications/message",
                                "params": { "level": "warning", "data": "nearly" } }));
        sender.message(&seen.says("there"));
    }))
    .await;
    let client = client.on_form(ada);
    for _ in 0..2 {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let (seen, logged) = (Arc::clone(&steps), Arc::clone(&steps));
        let call = client
            .call_tool("work", ())
            .on_progress(move |step| seen.lock().expect("steps").push(json!(step.progress)))
            .on_log(move |message| logged.lock().expect("steps").push(message.data.to_value()));
        assert_eq!(text(&call.await.expect("a result")), "there");
        assert_eq!(*steps.lock().expect("steps"), [json!(1.0), json!(2.0), json!("nearly")]);
    }
    let levels: Vec<Value> = old
        .seen()
        .into_iter()
        .filter(|seen| seen.method() == "logging/setLevel")
        .map(|seen| seen.body["params"].clone())
        .collect();
    assert_eq!(levels, [json!({ "level": "info" })]);
}

/// L7: a server that answers a call without waiting for what it asked in it is not left waiting.
#[tokio::test]
async fn a_question_that_its_call_outruns_is_refused() {
    let (client, old) = Old::start(tool(|old, seen, sender| async move {
        let general = old.general.lock().expect("general").clone().expect("a stream beside the call");
        general.message(&form("beside", "Who?"));
        sender.message(&form("within", "Who?"));
        sender.message(&seen.says("never mind"));
    }))
    .await;
    let client = client.on_form(ada);
    assert_eq!(text(&client.call_tool("ask", ()).await.expect("a result")), "never mind");
    for id in ["beside", "within"] {
        let answer = old.response(&json!(id)).await;
        assert!(answer["error"]["code"].is_i64() || answer["result"]["action"] == "accept", "{answer}");
    }
}

/// L7: messages that come in one batch, as one revision has it, are told apart.
#[tokio::test]
async fn a_batch_is_read_message_by_message() {
    let (client, _old) = Old::speaking("2025-03-26", |_, seen| {
        (seen.method() == "tools/call").then(|| {
            let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
            json_reply(200, &json!([log, seen.says("batched")]))
        })
    })
    .await;
    assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "batched");
    let (client, _old) = Old::start(|_, seen| {
        (seen.method() == "tools/call").then(|| json_reply(200, &json!([seen.says("no")])))
    })
    .await;
    assert!(matches!(client.call_tool("a", ()).await, Err(Error::PeerMisbehaved(_))));
}

/// L7: a server that does not take the answer is an error, and no hang.
#[tokio::test]
async fn an_answer_that_is_not_taken_ends_the_call() {
    let (client, _old) = Old::start(move |old, seen| {
        if seen.method().is_empty() && seen.body["id"] == "q" {
            return Some(empty(500));
        }
        tool(|_, _, sender: Sender| async move {
            sender.message(&form("q", "Who?"));
            sender.0.closed().await;
        })(old, seen)
    })
    .await;
    let error = client.on_form(ada).call_tool("ask", ()).await.expect_err("not taken");
    assert!(error.to_string().contains("500"), "{error}");
}

//! Questions as parameters: kinds other than forms, beside `Ask`, and mistakes that are found at the start.

use roundtrip::server::{Roots, Sampled, Samples};
use roundtrip::wire::{CreateMessageRequestParams, ElicitAction, JsonObject};
use roundtrip::{
    Answered, Args, Ask, Asked, Asking, Form, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mrtr_server::endpoint;
use crate::support::{Call, accept};

#[derive(Deserialize, JsonSchema)]
struct Booking {
    restaurant: String,
}

#[derive(Form)]
#[form(key = "party", message = "How many people at {restaurant}?")]
struct Party {
    people: u8,
}

#[derive(Form)]
#[form(key = "party", message = "Who?")]
struct Guests {
    #[expect(dead_code, reason = "never asked for")]
    names: String,
}

struct Review;

impl Samples for Review {
    const KEY: &'static str = "review";

    fn request(arguments: &JsonObject) -> CreateMessageRequestParams {
        CreateMessageRequestParams::text(format!("Review {}", arguments["restaurant"]), 10)
    }
}

fn said() -> Value {
    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "good" } })
}

fn nopa(tool: &str) -> Call {
    Call::tool(tool).with(json!({ "restaurant": "Nopa" }))
}

/// A12: the client's roots and a message of its model are parameters too, asked in the same round as forms.
#[tokio::test]
async fn roots_and_messages_of_the_model_are_parameters() {
    async fn book(
        Args(booking): Args<Booking>,
        Asked(party): Asked<Party>,
        Asked(review): Asked<Sampled<Review>>,
        Asked(Roots(roots)): Asked<Roots>,
    ) -> String {
        format!("{} for {}: {}, {}", booking.restaurant, party.people, review.text(), roots[0].uri)
    }
    let endpoint = endpoint([Tool::new("book", book)]);
    let first = nopa("book").begin(&endpoint).await;
    assert_eq!(first.keys(), ["party", "review", "roots"]);
    let request = &first.question("review")["params"]["messages"][0]["content"];
    assert_eq!(*request, json!({ "type": "text", "text": "Review \"Nopa\"" }));
    let answers = json!({ "party": accept(&json!({ "people": 2 })), "review": said() });
    let second = nopa("book").answer(&endpoint, &first, answers).await;
    assert_eq!(second.keys(), ["roots"]);
    let roots = json!({ "roots": { "roots": [{ "uri": "file:///a" }] } });
    let done = nopa("book").answer(&endpoint, &second, roots).await;
    assert_eq!(done.text(), "Nopa for 2: good, file:///a");
}

/// A12: beside `Ask`, a parameter is asked once, and costs no round once it is answered.
#[tokio::test]
async fn a_parameter_beside_ask_is_asked_once() {
    async fn book(Args(_): Args<Booking>, Asked(party): Asked<Party>, ask: Ask) -> Result<String, ToolError> {
        let garden = ask.confirm("garden", "In the garden?").await?;
        Ok(format!("{} {garden} in round {}", party.people, ask.round()))
    }
    let endpoint = endpoint([Tool::new("book", book)]);
    let first = nopa("book").begin(&endpoint).await;
    assert_eq!(first.keys(), ["party"]);
    let party = json!({ "party": accept(&json!({ "people": 2 })) });
    let second = nopa("book").answer(&endpoint, &first, party).await;
    assert_eq!(second.keys(), ["garden"]);
    let garden = json!({ "garden": accept(&json!({ "confirm": true })) });
    assert_eq!(nopa("book").answer(&endpoint, &second, garden).await.text(), "2 true in round 3");
}

/// A2: a question as a parameter that the body awaits itself goes out together with the body's own.
#[tokio::test]
async fn a_question_as_a_parameter_goes_out_with_those_of_the_body() {
    async fn book(Args(_): Args<Booking>, party: Asking<Party>, ask: Ask) -> Result<String, ToolError> {
        let garden = ask.confirm("garden", "In the garden?");
        let (party, garden) = tokio::try_join!(party.optional(), garden)?;
        Ok(format!("{:?} {garden} in round {}", party.map(|party| party.people), ask.round()))
    }
    let endpoint = endpoint([Tool::new("book", book)]);
    let first = nopa("book").begin(&endpoint).await;
    assert_eq!(first.keys(), ["party", "garden"]);
    assert_eq!(first.told("party"), "How many people at Nopa?");
    let garden = accept(&json!({ "confirm": true }));
    for (party, text) in [
        (accept(&json!({ "people": 2 })), "Some(2) true in round 2"),
        (json!({ "action": "decline" }), "None true in round 2"),
    ] {
        let answers = json!({ "party": party, "garden": garden });
        assert_eq!(nopa("book").answer(&endpoint, &first, answers).await.text(), text);
    }
}

fn problem(server: Server) -> String {
    server.build().expect_err("a mistake").to_string()
}

/// A7: two parameters that ask under one key are a mistake in the setup.
#[test]
fn two_parameters_of_one_key_are_a_setup_error() {
    async fn asked(Args(_): Args<Booking>, Asked(_): Asked<Party>, Asked(_): Asked<Guests>) -> &'static str {
        ""
    }
    async fn asking(
        Args(_): Args<Booking>,
        Asked(_): Asked<Option<Party>>,
        _: Asking<Guests>,
    ) -> &'static str {
        ""
    }
    for tool in [Tool::new("book", asked), Tool::new("book", asking)] {
        let problem = problem(Server::new("s", "1").tool(tool));
        assert!(problem.starts_with("tool `book`: two parameters have the key `party`"), "{problem}");
    }
}

/// A12: a name in a message that no argument has is a mistake in the setup.
#[test]
fn a_name_that_no_argument_has_is_a_setup_error() {
    async fn without(Asked(_): Asked<Party>) -> &'static str {
        ""
    }
    let server = || Server::new("s", "1");
    for server in [
        server().tool(Tool::new("book", without)),
        server().prompt(Prompt::new("book", without)),
        server().resource(Resource::new("app://book", "book", without)),
        server().template(ResourceTemplate::new("app://{name}", "book", without)),
        server().tool(Tool::new("book", async |_: Asking<Party>| "")),
    ] {
        let problem = problem(server);
        assert!(problem.contains("the message of `party` has `{restaurant}`"), "{problem}");
    }
    let any = async |Args(_): Args<serde_json::Map<String, Value>>, Asked(_): Asked<Party>| "";
    server().tool(Tool::new("any", any)).build().expect("any argument may be given");
    server()
        .template(ResourceTemplate::new("app://{restaurant}", "book", without))
        .build()
        .expect("a variable");
}

/// A4: an answer says what the user did.
#[test]
fn an_answer_says_what_the_user_did() {
    let answers = [Answered::Accepted(1), Answered::Declined, Answered::Cancelled];
    assert_eq!(answers.map(|answered| answered.to_string()), ["accepted", "declined", "cancelled"]);
    assert_eq!(answers.map(Answered::accepted), [Some(1), None, None]);
    let actions = [ElicitAction::Accept, ElicitAction::Decline, ElicitAction::Cancel];
    assert_eq!(answers.map(|answered| answered.action()), actions);
}

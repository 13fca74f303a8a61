//! Parameters that functions of the author's resolve: what they ask, how often they run, and how they fail.

mod rounds;
mod setup;

use std::sync::{Arc, Mutex};

use roundtrip::server::Endpoint;
use roundtrip::testing::{Effects, ReplayError, replay};
use roundtrip::{
    Args, Ask, Asked, Form, Keyring, MemoryLedger, Prompt, Resolve, Resolved, Resource, ResourceTemplate,
    Server, State, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Call, Turn, accept};

/// Resolvers that have begun and ended, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<&'static str>>>);

impl Diary {
    fn note(&self, what: &'static str) {
        self.0.lock().expect("a lock").push(what);
    }

    fn read(&self) -> Vec<&'static str> {
        self.0.lock().expect("a lock").clone()
    }
}

#[derive(Clone, Deserialize, JsonSchema)]
struct Booking {
    flight: String,
}

#[derive(Form)]
#[form(key = "party", message = "How many people on {flight}?")]
struct Party {
    people: u8,
}

#[derive(Form)]
struct Wish {
    seat: String,
}

/// A plane, looked up by the flight.
#[derive(Serialize, Deserialize)]
struct Plane {
    free: Vec<String>,
}

impl Resolve for Plane {
    const KEY: &'static str = "plane";
    type From = (Args<Booking>, State<Diary>);

    async fn resolve((Args(booking), State(diary)): Self::From, _: Ask) -> Result<Self, ToolError> {
        diary.note("plane");
        tokio::task::yield_now().await;
        let free: &[&str] = match booking.flight.as_str() {
            "full" => return Err(ToolError::new("no seat is free")),
            "last" => &["1A"],
            _ => &["1A", "2B"],
        };
        diary.note("plane found");
        Ok(Self { free: free.iter().map(ToString::to_string).collect() })
    }
}

/// The last free seat, or the one that the user chooses.
#[derive(Serialize, Deserialize)]
struct Seat(String);

impl Resolve for Seat {
    const KEY: &'static str = "seat";
    type From = (Resolved<Plane>, State<Diary>);

    async fn resolve((Resolved(plane), State(diary)): Self::From, ask: Ask) -> Result<Self, ToolError> {
        diary.note("seat");
        if let [last] = &plane.free[..] {
            return Ok(Self(last.clone()));
        }
        let wish: Wish = ask.form("wish", format!("Which of {}?", plane.free.join(", "))).await?;
        diary.note("seat chosen");
        Ok(Self(wish.seat))
    }
}

/// A meal, for those who want one: two questions, one after the other.
#[derive(Serialize, Deserialize)]
struct Meal(Option<bool>);

impl Resolve for Meal {
    const KEY: &'static str = "meal";
    type From = (Resolved<Plane>,);

    async fn resolve((Resolved(plane),): Self::From, ask: Ask) -> Result<Self, ToolError> {
        if plane.free.len() == 1 || !ask.confirm("hungry", "A meal?").await? {
            return Ok(Self(None));
        }
        Ok(Self(Some(ask.confirm("vegan", "A vegan one?").await?)))
    }
}

async fn book(
    Args(booking): Args<Booking>,
    Resolved(seat): Resolved<Seat>,
    Resolved(meal): Resolved<Meal>,
    Asked(party): Asked<Party>,
) -> String {
    format!("{} {} {:?} {}", booking.flight, seat.0, meal.0, party.people)
}

fn booking(diary: &Diary) -> Server {
    Server::new("flights", "1").state(diary.clone()).tool(Tool::new("book", book))
}

fn call(flight: &str) -> Call {
    Call::tool("book").with(json!({ "flight": flight }))
}

fn yes(sure: bool) -> Value {
    accept(&json!({ "confirm": sure }))
}

/// Answers to everything that is asked first.
fn answers() -> Value {
    json!({
        "wish": accept(&json!({ "seat": "2B" })),
        "hungry": yes(true),
        "party": accept(&json!({ "people": 2 })),
    })
}

/// Plays a booking to its end, each round at the next of these instances.
async fn play(instances: [&Endpoint; 3]) -> (Vec<Vec<String>>, Turn) {
    let first = call("RT1").begin(instances[0]).await;
    let second = call("RT1").answer(instances[1], &first, answers()).await;
    let done = call("RT1").answer(instances[2], &second, json!({ "vegan": yes(false) })).await;
    let keys = [&first, &second].map(|turn| turn.keys().into_iter().map(Into::into).collect());
    (keys.into(), done)
}

/// A2: resolvers that do not need each other ask in one round, though one has to look something up first, and so do
/// questions as parameters beside them. What a resolver asks next takes another round.
#[tokio::test]
async fn independent_resolvers_ask_in_one_round() {
    let endpoint = booking(&Diary::default()).build().expect("a server");
    let (keys, done) = play([&endpoint; 3]).await;
    assert_eq!(keys, [vec!["party", "wish", "hungry"], vec!["vegan"]]);
    assert_eq!(done.text(), "RT1 2B Some(false) 2");
}

/// A5: a resolver runs to its end once a flow, also one that several others need, and never begins again after that.
#[tokio::test]
async fn a_resolver_runs_to_its_end_once_a_flow() {
    let diary = Diary::default();
    let endpoint = booking(&diary).build().expect("a server");
    play([&endpoint; 3]).await;
    assert_eq!(diary.read(), ["plane", "plane found", "seat", "seat", "seat chosen"]);
}

/// A resolver that needs no answer asks for none.
#[tokio::test]
async fn a_resolver_may_decide_not_to_ask() {
    let endpoint = booking(&Diary::default()).build().expect("a server");
    let first = call("last").begin(&endpoint).await;
    assert_eq!(first.keys(), ["party"]);
    let party = json!({ "party": accept(&json!({ "people": 1 })) });
    assert_eq!(call("last").answer(&endpoint, &first, party).await.text(), "last 1A None 1");
}

/// S12: instances that share a ring finish what another has begun to resolve, and do not begin it anew.
#[tokio::test]
async fn another_instance_goes_on_with_what_was_resolved() {
    let (diary, keys) = (Diary::default(), Keyring::random().expect("a key"));
    let instance = || booking(&diary).seal(keys.clone()).build().expect("a server");
    let (one, two, three) = (instance(), instance(), instance());
    let (_, done) = play([&one, &two, &three]).await;
    assert_eq!(done.text(), "RT1 2B Some(false) 2");
    assert_eq!(diary.read().iter().filter(|what| **what == "plane").count(), 1);
}

/// M6: a round that comes again, to a server with a ledger, resolves nothing again.
#[tokio::test]
async fn a_recorded_round_resolves_nothing_again() {
    let diary = Diary::default();
    let endpoint = booking(&diary).ledger(MemoryLedger::new()).build().expect("a server");
    let first = call("RT1").begin(&endpoint).await;
    let second = call("RT1").answer(&endpoint, &first, answers()).await;
    let noted = diary.read();
    let again = call("RT1").answer(&endpoint, &first, answers()).await;
    assert_eq!((again.0, diary.read()), (second.0, noted));
}

/// A4: a refusal in a resolver ends the call as `?` would, and so does any other failure of it.
#[tokio::test]
async fn a_failure_of_a_resolver_ends_the_call() {
    let endpoint = booking(&Diary::default()).build().expect("a server");
    let first = call("RT1").begin(&endpoint).await;
    let declined = json!({ "wish": { "action": "decline" } });
    let declined = call("RT1").answer(&endpoint, &first, declined).await;
    assert_eq!(declined.failure(), "the user declined to answer `wish`");
    assert_eq!(call("full").begin(&endpoint).await.failure(), "no seat is free");
    assert!(Call::tool("book").begin(&endpoint).await.failure().contains("flight"), "arguments are checked");
}

/// Z1: a resolver that panics costs its own call an internal error.
#[tokio::test]
async fn a_resolver_that_panics_costs_one_call() {
    #[derive(Serialize, Deserialize)]
    struct Boom;
    impl Resolve for Boom {
        const KEY: &'static str = "boom";
        type From = ();
        async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
            assert!(!ask.confirm("sure", "Sure?").await?, "boom");
            Ok(Self)
        }
    }
    let tool = Tool::new("boom", async |Resolved(Boom), ask: Ask| format!("round {}", ask.round()));
    let endpoint = Server::new("s", "1").tool(tool).build().expect("a server");
    let first = Call::tool("boom").begin(&endpoint).await;
    let boom = Call::tool("boom").answer(&endpoint, &first, json!({ "sure": yes(true) })).await;
    assert_eq!(boom.error().0, -32603);
    let fine = Call::tool("boom").answer(&endpoint, &first, json!({ "sure": yes(false) })).await;
    assert_eq!(fine.text(), "round 2");
}

/// A1: prompts, resources and templates take resolved values as tools do.
#[tokio::test]
async fn prompts_and_templates_take_resolved_values() {
    async fn seat(Resolved(seat): Resolved<Seat>) -> String {
        format!("seat {}", seat.0)
    }
    #[derive(Serialize, Deserialize)]
    struct Mood(String);
    impl Resolve for Mood {
        const KEY: &'static str = "mood";
        type From = (roundtrip::Uri,);
        async fn resolve((uri,): Self::From, ask: Ask) -> Result<Self, ToolError> {
            let wish: Wish = ask.form("wish", format!("Where in {uri}?")).await?;
            Ok(Self(wish.seat))
        }
    }
    let mood = async |Resolved(mood): Resolved<Mood>| mood.0;
    let server = Server::new("flights", "1").state(Diary::default()).prompt(Prompt::new("seat", seat));
    let server = server.template(ResourceTemplate::new("flight://{flight}", "seat", seat));
    let endpoint = server.resource(Resource::new("app://mood", "mood", mood)).build().expect("a server");
    let prompt = Call::prompt("seat").with(json!({ "flight": "RT1" }));
    for (call, text) in [
        (prompt.clone(), "seat 2B"),
        (Call::resource("flight://RT1"), "seat 2B"),
        (Call::resource("app://mood"), "2B"),
    ] {
        let first = call.begin(&endpoint).await;
        let wish = json!({ "wish": accept(&json!({ "seat": "2B" })) });
        assert_eq!(call.answer(&endpoint, &first, wish).await.text(), text);
    }
    let first = prompt.begin(&endpoint).await;
    let declined = prompt.answer(&endpoint, &first, json!({ "wish": { "action": "decline" } })).await;
    assert!(declined.error().1.contains("declined"), "{declined:?}");
}

/// L2: resolvers ask a client of a handshake era while they wait, all at once, and run once.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn resolvers_ask_an_old_client_while_they_wait() {
    use crate::peers::{Pipe, V2025_11_25, accept, everything, request, text};

    let diary = Diary::default();
    let mut pipe = Pipe::agreed(booking(&diary), V2025_11_25, &everything()).await;
    let params = json!({ "name": "book", "arguments": { "flight": "RT1" } });
    pipe.send(&request(1, "tools/call", params)).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(pipe.receive().await);
    }
    for question in &asked {
        let properties = &question["params"]["requestedSchema"]["properties"];
        let content = match properties.as_object().expect("fields").keys().next().expect("a field").as_str() {
            "seat" => json!({ "seat": "2B" }),
            "people" => json!({ "people": 2 }),
            _ => json!({ "confirm": true }),
        };
        pipe.send(&accept(question, content)).await;
    }
    let vegan = pipe.receive().await;
    let done = pipe.call(&accept(&vegan, json!({ "confirm": true }))).await;
    assert_eq!(text(&done), "RT1 2B Some(true) 2");
    assert_eq!(diary.read(), ["plane", "plane found", "seat", "seat chosen"]);
}

/// A11: the replay harness follows resolvers side by side, each in an order of its own, and finds an effect of theirs that is
/// not in a step.
#[tokio::test]
async fn resolvers_survive_the_replay_harness() {
    #[derive(Serialize, Deserialize)]
    struct Paid(bool);
    impl Resolve for Paid {
        const KEY: &'static str = "paid";
        type From = (State<(Effects, bool)>,);
        async fn resolve((State((effects, careful)),): Self::From, ask: Ask) -> Result<Self, ToolError> {
            if careful {
                ask.remember("pay", async || effects.happened("payment")).await?;
            } else {
                effects.happened("payment");
            }
            Ok(Self(ask.confirm("tip", "A tip?").await?))
        }
    }
    async fn pay(
        Args(_): Args<Booking>,
        Resolved(meal): Resolved<Meal>,
        Resolved(paid): Resolved<Paid>,
    ) -> String {
        format!("{:?} {}", meal.0, paid.0)
    }
    let script = |careful: bool| {
        let effects = Effects::new();
        let server = Server::new("s", "1").state(Diary::default()).state((effects.clone(), careful));
        let call = replay(server.tool(Tool::new("pay", pay))).tool("pay", json!({ "flight": "RT1" }));
        let call =
            call.accept("hungry", json!({ "confirm": true })).accept("vegan", json!({ "confirm": true }));
        call.accept("tip", json!({ "confirm": true })).effects(&effects)
    };
    let result = script(true).await.expect("a flow that survives");
    assert_eq!(result["content"][0]["text"], "Some(true) true");
    let repeated = script(false).await.expect_err("an effect that is repeated");
    assert!(matches!(repeated, ReplayError::Repeated { .. }), "{repeated}");
}

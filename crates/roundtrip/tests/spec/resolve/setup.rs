//! Parameters that functions of the author's resolve: mistakes that are found at the start.

use roundtrip::server::Partial;
use roundtrip::{
    Args, Ask, Asked, Form, Prompt, Resolve, Resolved, Round, Server, State, Tool, ToolError, Uri,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resolvers without a function to speak of: their keys and parameters are all that counts.
macro_rules! resolvers {
    ($($name:ident = $key:literal from $from:ty,)*) => {
        $(#[derive(Serialize, Deserialize)]
        struct $name;

        impl Resolve for $name {
            const KEY: &'static str = $key;
            type From = $from;

            async fn resolve(_: Self::From, _: Ask) -> Result<Self, ToolError> {
                Ok(Self)
            }
        })*
    };
}

#[derive(Deserialize, JsonSchema)]
struct Booking {
    #[expect(dead_code, reason = "its name is all that counts")]
    flight: String,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    #[expect(dead_code, reason = "its name is all that counts")]
    meal: String,
}

#[derive(Form)]
#[form(key = "seat", message = "Which seat on {flight}?")]
struct Wish {
    #[expect(dead_code, reason = "never asked for")]
    seat: String,
}

resolvers! {
    Egg = "egg" from (Resolved<Hen>, State<u8>),
    Hen = "hen" from (Ask, Resolved<Chick>),
    Chick = "chick" from (Resolved<Egg>,),
    Own = "own" from (Resolved<Own>,),
    Seat = "seat" from (Args<Booking>,),
    Place = "seat" from (),
    Asks = "asks" from (Args<Booking>, Asked<Wish>),
    Ordered = "order" from (Args<Order>,),
    Twice = "twice" from (Args<Booking>, Args<Booking>),
    ByHand = "by-hand" from (Round,),
    Read = "read" from (Uri,),
    Stored = "stored" from (State<u8>,),
    Lower = "lower" from (Args<Booking>, Resolved<Stored>),
    Upper = "upper" from (Resolved<Lower>, Resolved<Stored>, Args<Booking>, Ask),
}

#[track_caller]
fn assert_mistake(tool: Tool, mistake: &str) {
    let problem = Server::new("s", "1").tool(tool).build().expect_err("a mistake").to_string();
    assert!(problem.starts_with("tool `t`: ") && problem.contains(mistake), "{problem}");
}

/// Resolvers that need each other are a mistake in the setup, which names them in their order.
#[test]
fn a_circle_of_resolvers_is_a_setup_error() {
    let circle =
        |names: [&str; 2]| names.map(|name| format!("spec::resolve::setup::{name}`")).join(" from `");
    let tool = Tool::new("t", async |_: Resolved<Own>| "");
    assert_mistake(tool, &format!("`{} is a circle", circle(["Own", "Own"])));
    for tool in [
        Tool::new("t", async |_: Resolved<Egg>| ""),
        Tool::new("t", async |_: Resolved<Upper>, _: Resolved<Egg>| ""),
    ] {
        assert_mistake(tool, &format!("`{} from `spec", circle(["Egg", "Hen"])));
    }
    assert_mistake(Tool::new("t", async |_: Resolved<Chick>| ""), &circle(["Chick", "Egg"]));
}

/// A7: two types of one key, and a resolver with the key of a question, are mistakes in the setup.
#[test]
fn two_parameters_of_one_key_are_a_setup_error() {
    let mistake = "two parameters have the key `seat`";
    assert_mistake(Tool::new("t", async |_: Resolved<Seat>, _: Resolved<Place>| ""), mistake);
    assert_mistake(Tool::new("t", async |_: Resolved<Seat>, _: Asked<Wish>| ""), mistake);
    assert_mistake(Tool::new("t", async |_: Resolved<Asks>, _: Resolved<Place>| ""), mistake);
}

/// The parameters of a resolver are checked as those of its handler are.
#[test]
fn mistakes_in_the_parameters_of_a_resolver_are_setup_errors() {
    let other = "arguments of different types";
    assert_mistake(Tool::new("t", async |_: Resolved<Ordered>, _: Args<Booking>| ""), other);
    assert_mistake(Tool::new("t", async |_: Args<Booking>, _: Resolved<Ordered>| ""), other);
    assert_mistake(Tool::new("t", async |_: Resolved<Twice>| ""), "takes the arguments twice");
    assert_mistake(Tool::new("t", async |_: Resolved<ByHand>| ""), "a resolver takes `Round`");
    assert_mistake(Tool::new("t", async |_: Resolved<Read>| ""), "`Uri`");
    assert_mistake(Tool::new("t", async |_: Resolved<Stored>| ""), "`State<u8>`");
    let complete = async |_: Partial, _: Resolved<Place>| Vec::new();
    let prompt = Prompt::new("p", async |_: Args<Booking>| "").complete("flight", complete);
    let problem = Server::new("s", "1").prompt(prompt).build().expect_err("a mistake").to_string();
    assert!(problem.contains("the completer of `flight` asks"), "{problem}");
}

/// Sharing between resolvers is no mistake: arguments of one type, a resolver that several need, and `Round` in the body.
#[test]
fn resolvers_may_share_arguments_and_resolvers() {
    async fn shared(
        _: Resolved<Upper>,
        _: Args<Booking>,
        _: Resolved<Lower>,
        _: Resolved<Upper>,
        _: Round,
    ) -> &'static str {
        ""
    }
    Server::new("s", "1").state(0_u8).tool(Tool::new("t", shared)).build().expect("a server");
}

/// `debug_handler` takes resolved values, and knows completers.
#[test]
fn debug_handler_knows_resolved_values_and_completers() {
    #[roundtrip::debug_handler(prompt)]
    async fn prompt(_: Args<Booking>, _: Resolved<Place>) -> &'static str {
        ""
    }
    #[roundtrip::debug_handler(completer)]
    async fn flights(partial: Partial, State(flight): State<String>) -> Result<Vec<String>, ToolError> {
        Ok(partial.starting([flight.as_str()]))
    }
    let prompt = Prompt::new("p", prompt).complete("flight", flights);
    Server::new("s", "1").state(String::new()).prompt(prompt).build().expect("a server");
}

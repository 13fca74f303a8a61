//! Tools of the asking servers: what they ask, and what they answer to [the user](crate::user).

use serde_json::{Value, json};

/// A tool, its questions by round (sorted), and the text of its answer.
#[derive(Debug)]
pub struct Asking {
    /// Its name.
    pub tool: &'static str,
    /// Makes the arguments of the call.
    pub arguments: fn() -> Value,
    /// Its questions, each behind the number of its round.
    pub asked: &'static [&'static str],
    /// Text of its result.
    pub text: &'static str,
}

/// Creates the entry of a tool that is called without arguments.
pub const fn asking(tool: &'static str, asked: &'static [&'static str], text: &'static str) -> Asking {
    Asking { tool, arguments: || json!({}), asked, text }
}

/// Question for the name, in the first round.
pub const NAME: &str = "1 What is your name?";
/// Question for the roots, in the first round.
pub const ROOTS: &str = "1 the roots";
/// Question for a visit, in the first round.
pub const CONSENT: &str = "1 Please give your consent at https://example.com/consent?id=7";
const MODEL: &str = "1 the model, 100 tokens";
/// Answer of `survey`: defaults are filled in for fields that the user did not type.
const SURVEYED: &str = r#"{"age":36,"colour":"teal","email":"ada@example.com","member":true,"name":"Ada","score":9.5,"size":"small","toppings":["cheese","olives"]}"#;

/// Tools of the asking servers, on every SDK.
pub const TOOLS: [Asking; 11] = [
    asking("greet", &[NAME], "Hello, Ada!"),
    Asking {
        tool: "greet",
        arguments: || json!({ "greeting": "Welcome" }),
        asked: &[NAME],
        text: "Welcome, Ada!",
    },
    asking("sample", &[MODEL], "the model said: Paris"),
    asking("roots", &[ROOTS], "2 roots: file:///project, file:///notes"),
    asking("together", &[NAME, MODEL, ROOTS], "Ada: Paris (2 roots)"),
    asking("rounds", &[NAME, "2 Ada, what is your favourite colour?"], "Ada likes teal"),
    asking("survey", &["1 Please fill this in"], SURVEYED),
    asking("no_state", &[NAME], "Ada, without state"),
    asking("visit", &[CONSENT], "thank you for the visit"),
    asking("wait", &[], "ready after 3 rounds"),
    // The round that waits counts as one.
    asking("wait_and_ask", &["2 What is your name?"], "named Ada, after all"),
];

//! Elicitation: forms and web pages as they cross the wire (client, "Elicitation").

use roundtrip::wire::ElicitSchema;
use roundtrip::{Ask, Choice, Form, Server, Tool, ToolError};
use serde_json::{Value, json};

use crate::support::{Call, accept};

#[derive(Choice, Debug, PartialEq)]
enum Plain {
    Red,
    Green,
}

#[derive(Choice, Debug, PartialEq)]
enum Titled {
    #[choice(title = "By the window")]
    Window,
    #[choice(title = "In the garden")]
    Garden,
}

/// One of everything a form can have.
#[derive(Form, Debug)]
#[expect(dead_code, reason = "it is read by being shown")]
struct Everything {
    #[form(title = "Your name", min_length = 2, max_length = 5, default = "Ann")]
    name: String,
    #[form(format = "email")]
    email: Option<String>,
    #[form(format = "uri")]
    home: Option<String>,
    #[form(format = "date")]
    day: Option<String>,
    #[form(format = "date-time")]
    moment: Option<String>,
    #[form(min = 0.5, max = 9.5, default = 2.5)]
    weight: f64,
    #[form(min = 1, max = 12)]
    people: u8,
    #[form(default = true)]
    quiet: bool,
    #[form(default = "green")]
    colour: Plain,
    seat: Titled,
    #[form(min_items = 1, max_items = 2, default = ["red"])]
    colours: Vec<Plain>,
    seats: Vec<Titled>,
}

fn everything_asked() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Your name", "minLength": 2, "maxLength": 5, "default": "Ann" },
            "email": { "type": "string", "format": "email" },
            "home": { "type": "string", "format": "uri" },
            "day": { "type": "string", "format": "date" },
            "moment": { "type": "string", "format": "date-time" },
            "weight": { "type": "number", "minimum": 0.5, "maximum": 9.5, "default": 2.5 },
            "people": { "type": "integer", "minimum": 1, "maximum": 12 },
            "quiet": { "type": "boolean", "default": true },
            "colour": { "type": "string", "enum": ["red", "green"], "default": "green" },
            "seat": {
                "type": "string",
                "oneOf": [
                    { "const": "window", "title": "By the window" },
                    { "const": "garden", "title": "In the garden" },
                ],
            },
            "colours": {
                "type": "array",
                "items": { "type": "string", "enum": ["red", "green"] },
                "minItems": 1,
                "maxItems": 2,
                "default": ["red"],
            },
            "seats": {
                "type": "array",
                "items": {
                    "anyOf": [
                        { "const": "window", "title": "By the window" },
                        { "const": "garden", "title": "In the garden" },
                    ],
                },
            },
        },
    })
}

/// E1: every kind of field goes out in the specification's form, typed and by hand, and is read with its defaults.
#[tokio::test]
async fn a_form_of_everything_is_asked_and_read() {
    async fn typed(ask: Ask) -> Result<String, ToolError> {
        Ok(format!("{:?}", ask.form::<Everything>("all", "Everything, please").await?))
    }
    async fn by_schema(ask: Ask) -> Result<String, ToolError> {
        let mut schema = everything_asked();
        schema["required"] = json!(["people", "seat", "seats"]);
        let schema: ElicitSchema = serde_json::from_value(schema).expect("a schema");
        Ok(json!(ask.form_of("all", "Everything, please", schema).await?).to_string())
    }
    let server =
        Server::new("forms", "1").tool(Tool::new("typed", typed)).tool(Tool::new("by_schema", by_schema));
    let endpoint = server.build().expect("a server");
    for tool in ["typed", "by_schema"] {
        let call = Call::tool(tool);
        let first = call.begin(&endpoint).await;
        let mut asked = first.question("all")["params"]["requestedSchema"].clone();
        let required = asked.as_object_mut().expect("an object").remove("required");
        assert_eq!(asked, everything_asked(), "{tool}");
        assert_eq!(required, Some(json!(["people", "seat", "seats"])), "{tool}");
        assert_eq!(first.question("all")["params"]["mode"], "form");

        for (field, wrong) in [
            ("name", json!("A")),
            ("name", json!("Bartholomew")),
            ("name", json!(1)),
            ("email", json!("nobody")),
            ("home", json!("not a uri")),
            ("day", json!("2026-02-30")),
            ("moment", json!("2026-02-03")),
            ("weight", json!(0)),
            ("people", json!(13)),
            ("people", json!("2")),
            ("people", json!(1.5)),
            ("quiet", json!("true")),
            ("colour", json!("blue")),
            ("seat", json!("By the window")),
            ("colours", json!([])),
            ("colours", json!("red")),
            ("seats", json!(["cellar"])),
        ] {
            let mut content = json!({ "people": 2, "seat": "garden", "seats": [] });
            content[field] = wrong.clone();
            let again = call.answer(&endpoint, &first, json!({ "all": accept(&content) })).await;
            assert!(
                again.told("all").contains(&format!("{field}: ")),
                "{field} {wrong}: {}",
                again.told("all")
            );
        }
        let content = json!({ "people": 2.0, "seat": "garden", "seats": ["window"], "email": "a@b.example" });
        let done = call.answer(&endpoint, &first, json!({ "all": accept(&content) })).await;
        let text = done.text();
        for part in ["2", "arden", "indow", "a@b.example"] {
            assert!(text.contains(part), "{tool}: {text}");
        }
        if tool == "typed" {
            for default in ["\"Ann\"", "2.5", "true", "Green", "[Red]"] {
                assert!(text.contains(default), "{default}: {text}");
            }
        }
    }
}

async fn form_or_url(ask: Ask) -> Result<String, ToolError> {
    let may = ask.may();
    if may.url.is_ok() {
        ask.url("it", "Please sign in", "https://id.example/in").await?;
        return Ok("by page".into());
    }
    Ok(format!("by form: {}", ask.confirm("it", "Yes?").await?))
}

/// E3: an empty elicitation capability means forms and nothing else.
#[tokio::test]
async fn an_empty_capability_means_forms_only() {
    let server = Server::new("forms", "1")
        .tool(Tool::new("either", form_or_url))
        .tool(Tool::new("url", async |ask: Ask| {
            ask.url("it", "Please sign in", "https://id.example/in").await.map(|()| "x")
        }));
    let endpoint = server.build().expect("a server");
    for (capability, mode) in [
        (json!({}), "form"),
        (json!({ "form": {} }), "form"),
        (json!({ "form": {}, "url": {} }), "url"),
        (json!({ "url": {} }), "url"),
        (json!({ "form": {}, "somethingNew": {} }), "form"),
    ] {
        let turn =
            Call::tool("either").declaring(&json!({ "elicitation": capability })).begin(&endpoint).await;
        assert_eq!(turn.question("it")["params"]["mode"], mode, "{capability}");
    }
    let turn = Call::tool("url").declaring(&json!({ "elicitation": {} })).begin(&endpoint).await;
    assert_eq!(turn.error().0, -32021);
}

/// E4: a web page is asked for by message and address alone, and whatever content comes with the consent is none of
/// the handler's business.
#[tokio::test]
async fn a_web_page_carries_no_content() {
    async fn page(ask: Ask) -> Result<String, ToolError> {
        ask.url("page", "Please sign in", "https://id.example/in?a=1&b=2#c").await?;
        Ok("consented".into())
    }
    let endpoint = Server::new("forms", "1").tool(Tool::new("page", page)).build().expect("a server");
    let call = Call::tool("page");
    let first = call.begin(&endpoint).await;
    assert_eq!(
        *first.question("page"),
        json!({
            "method": "elicitation/create",
            "params": { "mode": "url", "message": "Please sign in", "url": "https://id.example/in?a=1&b=2#c" },
        }),
        "no elicitationId, no schema"
    );
    for answer in [
        json!({ "action": "accept" }),
        accept(&json!({})),
        accept(&json!({ "password": "swordfish", "deep": [{}] })),
    ] {
        assert_eq!(call.answer(&endpoint, &first, json!({ "page": answer })).await.text(), "consented");
    }
}

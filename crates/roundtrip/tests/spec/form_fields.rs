//! Forms with types of other crates, which are fields with the cargo features of these crates' names.

use std::fmt::Debug;

use roundtrip::form::Form;
use roundtrip::{Ask, Server, Tool, ToolError};
use serde_json::{Value, json};

use crate::support::{Call, accept};

/// Asks for a form of one field `it`: its schema is this, `good` is read as `read`, and `bad` is asked for again with a reason
/// that says `why`.
async fn asks<F: Form + Debug>(property: Value, (good, read): (&str, &str), (bad, why): (&str, &str)) {
    async fn ask<F: Form + Debug>(ask: Ask) -> Result<String, ToolError> {
        let form: F = ask.form("form", "Please").await?;
        Ok(format!("{form:?}"))
    }
    let endpoint = Server::new("s", "1").tool(Tool::new("ask", ask::<F>)).build().expect("a server");
    let asked = Call::tool("ask").begin(&endpoint).await;
    assert_eq!(asked.question("form")["params"]["requestedSchema"]["properties"], json!({ "it": property }));
    let answer = |text: &str| json!({ "form": accept(&json!({ "it": text })) });
    let again = Call::tool("ask").answer(&endpoint, &asked, answer(bad)).await;
    assert!(again.told("form").contains(why), "{}", again.told("form"));
    let done = Call::tool("ask").answer(&endpoint, &again, answer(good)).await;
    assert!(done.text().contains(read), "{}", done.text());
}

macro_rules! form {
    ($type:ty) => {{
        #[derive(roundtrip::Form, Debug)]
        #[expect(dead_code, reason = "it is read by being shown")]
        struct One {
            it: $type,
        }
        asks::<One>
    }};
}

const DATE: (&str, &str) = ("2026-12-24", "2026-12-24");
const NO_DATE: (&str, &str) = ("2026-02-30", "must be a date such as 2026-07-28");
const NO_MOMENT: (&str, &str) = ("2026-12-24T18:00", "must be a date and time such as");

fn text(format: &str) -> Value {
    json!({ "type": "string", "format": format })
}

#[tokio::test]
async fn dates_of_jiff() {
    form!(jiff::civil::Date)(text("date"), DATE, NO_DATE).await;
    let moment = ("2026-12-24T18:00:00.5+02:00", "2026-12-24T16:00:00.5Z");
    form!(jiff::Timestamp)(text("date-time"), moment, NO_MOMENT).await;
}

#[tokio::test]
async fn dates_of_chrono() {
    use chrono::{DateTime, Utc};
    form!(chrono::NaiveDate)(text("date"), DATE, NO_DATE).await;
    let moment = ("2026-12-24T18:00:00+02:00", "2026-12-24T16:00:00Z");
    form!(DateTime<Utc>)(text("date-time"), moment, NO_MOMENT).await;
    let moment = ("2026-12-24T18:00:00+02:00", "2026-12-24T18:00:00+02:00");
    form!(DateTime<chrono::FixedOffset>)(text("date-time"), moment, NO_MOMENT).await;
}

#[tokio::test]
async fn dates_of_time() {
    form!(time::Date)(text("date"), DATE, NO_DATE).await;
    let moment = ("2026-12-24T18:00:00+02:00", "2026-12-24 18:00:00.0 +02:00:00");
    form!(time::OffsetDateTime)(text("date-time"), moment, NO_MOMENT).await;
}

#[tokio::test]
async fn urls() {
    let good = ("https://example.com/a?b=c", "\"example.com\"");
    form!(url::Url)(text("uri"), good, ("example.com", "must be a URI")).await;
    // A URI by its letters, and not a URL: the type says why.
    form!(url::Url)(text("uri"), good, ("https://a:99999/", "invalid port number")).await;
}

#[tokio::test]
async fn uuids() {
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    form!(uuid::Uuid)(json!({ "type": "string" }), (id, id), ("67e5", "must be a UUID such as")).await;
}

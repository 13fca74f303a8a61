//! Calls that end with an answer, through every kind of question.

use roundtrip::Client;
use roundtrip_interop::asking::{Asking, CONSENT, NAME, ROOTS, TOOLS, asking};
use roundtrip_interop::report::{Failure, Report, Text, expect};
use roundtrip_interop::user::User;
use serde_json::json;
use tokio::task::JoinSet;

/// Returns the questions of a tool. Servers of the handshake eras have no rounds to wait in: theirs come in the first.
fn asked_of(asking: &Asking, handshake: bool) -> &'static [&'static str] {
    if handshake && asking.tool == "wait_and_ask" { &[NAME] } else { asking.asked }
}

/// Tools that only servers of the handshake eras have: an error until a page was visited, and a question outside of
/// the call.
const EARLIER: [Asking; 2] = [
    Asking {
        tool: "visit_first",
        arguments: || json!({ "id": format!("{:?}", std::time::Instant::now()) }),
        asked: &[CONSENT],
        text: "thank you for the visit",
    },
    asking("roots_apart", &[ROOTS], "2 roots: file:///project, file:///notes"),
];

pub(crate) async fn check(report: &mut Report, client: &Client, handshake: bool) {
    report.check("tools/list", listed(client)).await;
    for asking in &TOOLS {
        let name = format!("{} {}", asking.tool, (asking.arguments)());
        report.check(&name, tool(client, asking, asked_of(asking, handshake))).await;
    }
    report.check("prompt", prompt(client)).await;
    report.check("resource template", resource(client)).await;
    report.check("many calls at the same time", at_once(client, handshake)).await;
    if handshake {
        for asking in &EARLIER {
            report.check(asking.tool, tool(client, asking, asking.asked)).await;
        }
    }
}

async fn listed(client: &Client) -> Result<String, Failure> {
    let tools = client.list_tools().await?;
    for Asking { tool, .. } in &TOOLS {
        expect(tools.iter().any(|listed| listed.name == *tool), || format!("{tool} is not listed"))?;
    }
    Ok(format!("{} tools", tools.len()))
}

async fn tool(client: &Client, asking: &Asking, asked: &[&str]) -> Result<String, Failure> {
    let user = User::default();
    let result = user.at(client).call_tool(asking.tool, (asking.arguments)()).await?;
    let right = result.is_error != Some(true) && result.text() == asking.text;
    expect(right, || format!("wanted `{}`, got {result:?}", asking.text))?;
    expect(user.asked() == asked, || format!("wanted {asked:?} to be asked, not {:?}", user.asked()))?;
    Ok(format!("{asked:?}: {}", asking.text))
}

async fn prompt(client: &Client) -> Result<String, Failure> {
    let user = User::default();
    let text = user.at(client).get_prompt("topic").argument("kind", "poem").await?.text();
    expect(text == "Write a poem about tides", || format!("got `{text}`"))?;
    expect(user.asked() == ["1 What is the poem about?"], || format!("asked {:?}", user.asked()))?;
    Ok(text)
}

async fn resource(client: &Client) -> Result<String, Failure> {
    let user = User::default();
    let text = user.at(client).read_resource("note://7").await?.text();
    expect(text == "Note 7 about tides", || format!("got `{text}`"))?;
    expect(user.asked() == ["1 What is note 7 about?"], || format!("asked {:?}", user.asked()))?;
    Ok(text)
}

/// Checks that neither answers nor state end up in another call. A question on stdio does not say which call it
/// belongs to, so in the handshake eras one user answers for all.
async fn at_once(client: &Client, handshake: bool) -> Result<String, Failure> {
    let mut calls = JoinSet::new();
    let all = User::default();
    for asking in TOOLS.iter().chain(&TOOLS).chain(&TOOLS) {
        let (client, user) = (client.clone(), all.clone());
        calls.spawn(async move {
            if !handshake {
                return tool(&client, asking, asking.asked).await;
            }
            let result = user.at(&client).call_tool(asking.tool, (asking.arguments)()).await?;
            let right = result.text() == asking.text;
            expect(right, || format!("wanted `{}`, got {result:?}", asking.text))?;
            Ok(result.text())
        });
    }
    let mut answers = 0;
    while let Some(call) = calls.join_next().await {
        call??;
        answers += 1;
    }
    Ok(format!("{answers} answers, each to its call"))
}

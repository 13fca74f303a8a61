//! Tools, a prompt and a resource that ask: answered by files and by options, refused, kept for another process.

use roundtrip_interop::asking::{Asking, TOOLS};
use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::{Map, json};

use crate::command::{Ran, Roundtrip, says};

pub(crate) async fn check(report: &mut Report, roundtrip: &Roundtrip, handshake: bool) {
    report.check("list", listed(roundtrip)).await;
    for asking in &TOOLS {
        let name = format!("call {} --args {} --answers", asking.tool, (asking.arguments)());
        report.check(&name, answered(roundtrip, asking)).await;
    }
    report.check("call --arg", with_argument(roundtrip)).await;
    report.check("call --sampler", sampled(roundtrip)).await;
    report.check("call --root", rooted(roundtrip)).await;
    report.check("prompt --answers", prompt(roundtrip)).await;
    report.check("read --answers", resource(roundtrip)).await;
    for word in ["decline", "cancel"] {
        report.check(&format!("call, {word}"), refused(roundtrip, word)).await;
    }
    report.check("call --decline-all", declined(roundtrip)).await;
    report.check("call without answers", fails_closed(roundtrip)).await;
    report.check("call of no tool", unknown(roundtrip)).await;
    report.check("call without end", endless(roundtrip)).await;
    if handshake {
        report.check("call --save", not_saved(roundtrip)).await;
    } else {
        report.check("call --save, resume", resumed(roundtrip)).await;
    }
}

async fn listed(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let list = roundtrip.run(&["list"], &["--json"]).await?.exits(0)?.json()?;
    let names: Vec<&str> =
        list["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    for Asking { tool, .. } in &TOOLS {
        expect(names.contains(tool), || format!("{tool} is not among {names:?}"))?;
    }
    Ok(format!("{} tools", names.len()))
}

async fn answered(roundtrip: &Roundtrip, asking: &Asking) -> Result<String, Failure> {
    let arguments = (asking.arguments)().to_string();
    let ran = roundtrip.answered(&["call"], &[asking.tool, "--args", &arguments]).await?;
    says(&ran.exits(0)?, asking.text)
}

async fn with_argument(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.answered(&["call"], &["greet", "--arg", "greeting=Welcome"]).await?;
    says(&ran.exits(0)?, "Welcome, Ada!")
}

/// Checks the result as people see it: the text, and nothing else.
async fn sampled(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["sample", "--sampler", "printf Paris"]).await?.exits(0)?;
    expect(ran.out == "the model said: Paris\n", || format!("got {ran:?}"))?;
    Ok(ran.out)
}

async fn rooted(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["roots", "--root", "file:///srv", "--json"]).await?;
    says(&ran.exits(0)?, "1 roots: file:///srv")
}

async fn prompt(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.answered(&["prompt"], &["topic", "--arg", "kind=poem"]).await?.exits(0)?;
    let text = ran.json()?["messages"][0]["content"]["text"].clone();
    expect(text == "Write a poem about tides", || format!("got {ran:?}"))?;
    Ok(text.to_string())
}

async fn resource(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.answered(&["read"], &["note://7"]).await?.exits(0)?;
    let text = ran.json()?["contents"][0]["text"].clone();
    expect(text == "Note 7 about tides", || format!("got {ran:?}"))?;
    Ok(text.to_string())
}

/// Checks that a refusal reaches the tool, and is told from a failure of the tool.
async fn refused(roundtrip: &Roundtrip, word: &str) -> Result<String, Failure> {
    let (key, _) = asked(roundtrip, "greet").await?;
    let file = roundtrip.answers(&json!({ key: word }))?;
    let ran = roundtrip.run(&["call"], &["greet", "--answers", &file, "--json"]).await?.exits(4)?;
    expect(ran.json()?["isError"] == true && ran.text()?.contains(word), || format!("got {ran:?}"))?;
    ran.text()
}

async fn declined(roundtrip: &Roundtrip) -> Result<String, Failure> {
    roundtrip.run(&["call"], &["rounds", "--decline-all", "--json"]).await?.exits(4)?.text()
}

async fn fails_closed(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let (key, ran) = asked(roundtrip, "survey").await?;
    let question = &ran.questions()?[0];
    let fields = question["schema"]["properties"].as_object().map_or(0, Map::len);
    let right = ran.out.is_empty() && question["message"] == "Please fill this in" && fields == 8;
    expect(right, || format!("got {ran:?}"))?;
    Ok(format!("exit code 10: `{key}`, {fields} fields"))
}

/// Calls a tool that asks one thing, without an answer. Returns the key of its question.
async fn asked(roundtrip: &Roundtrip, tool: &str) -> Result<(String, Ran), Failure> {
    let ran = roundtrip.run(&["call"], &[tool, "--json"]).await?.exits(10)?;
    let key = ran.questions()?[0]["key"].as_str().ok_or("a question without a key")?.to_owned();
    Ok((key, ran))
}

async fn unknown(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["graet", "--args", "{}", "--json"]).await?.exits(2)?;
    let message = ran.error()?["message"].to_string();
    expect(message.contains("`greet`"), || format!("the nearest name is not in {message}"))?;
    Ok(message)
}

async fn endless(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["endless", "--yes", "--json"]).await?.exits(7)?;
    Ok(ran.error()?["message"].to_string())
}

async fn not_saved(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let flow = roundtrip.file()?;
    let ran = roundtrip.run(&["call"], &["greet", "--save", &flow, "--json"]).await?.exits(10)?;
    expect(!std::fs::exists(&flow)?, || "a call of this era is open in one process".to_owned())?;
    Ok(ran.error()?["message"].to_string())
}

/// Checks that another process goes on with a call. A server that is started for each run cannot open the state of another.
async fn resumed(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let (tool, text) =
        if roundtrip.is_shared() { ("rounds", "Ada likes teal") } else { ("no_state", "Ada, without state") };
    let flow = roundtrip.file()?;
    let mut ran = roundtrip.run(&["call"], &[tool, "--save", &flow, "--json"]).await?;
    let mut rounds = 0;
    while ran.code == 10 {
        rounds += 1;
        let file = roundtrip.answers(&ran.answers()?.into())?;
        // A file is not trusted to run a command: it is given again.
        ran = roundtrip.resume(&[&flow, "--answers", &file, "--save", &flow, "--json"]).await?;
    }
    let text = says(&ran.exits(0)?, text)?;
    Ok(format!("{text}, in {} processes", rounds + 1))
}

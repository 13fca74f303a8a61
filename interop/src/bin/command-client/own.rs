//! `roundtrip serve`: a tool that asks, a task that other processes answer, a result in parts.

use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::json;

use crate::command::{Roundtrip, says};
use crate::tasks::detached;

const STORY: &str = "A crate was lost at sea. It was found.";

pub(crate) async fn check(report: &mut Report, roundtrip: &Roundtrip) {
    report.check("call book_table", booked(roundtrip, &[])).await;
    let old = ["--protocol", "2025-11-25"];
    report.check("call book_table, handshake", booked(roundtrip, &old)).await;
    report.check("call report, a task", task(roundtrip)).await;
    report.check("call story, in parts", parts(roundtrip)).await;
    if roundtrip.is_shared() {
        report.check("call --detach, task answer, wait", task_is_answered(roundtrip)).await;
    }
}

async fn booked(roundtrip: &Roundtrip, options: &[&str]) -> Result<String, Failure> {
    let keys = if options.is_empty() { ["party", "day"] } else { ["elicitation-1", "elicitation-2"] };
    let answers = json!({ keys[0]: { "people": 4 }, keys[1]: { "date": "2026-12-31" } });
    let file = roundtrip.answers(&answers)?;
    let call = ["book_table", "--arg", "restaurant=Nopa", "--answers", &file, "--json"];
    let ran = roundtrip.run(&["call"], &[&call, options].concat()).await?.exits(0)?;
    says(&ran, "Nopa for 4 on 2026-12-31, deposit 80")
}

async fn task(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["report", "--yes", "--json"]).await?;
    says(&ran.exits(0)?, "42 rows published")
}

/// Checks that parts are printed once.
async fn parts(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["story", "--yes"]).await?.exits(0)?;
    expect(ran.out == format!("{STORY}\n"), || format!("got {ran:?}"))?;
    says(&roundtrip.run(&["call"], &["story", "--yes", "--json"]).await?.exits(0)?, STORY)
}

async fn task_is_answered(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let id = detached(roundtrip, "report").await?;
    // It asks when it has read the archive.
    roundtrip.run(&["task", "wait"], &[&id, "--json"]).await?.exits(10)?.questions()?;
    let file = roundtrip.answers(&json!({ "publish": { "confirm": false } }))?;
    roundtrip.run(&["task", "answer"], &[&id, "--answers", &file, "--json"]).await?.exits(0)?;
    says(&roundtrip.run(&["task", "wait"], &[&id, "--json"]).await?.exits(0)?, "kept back")
}

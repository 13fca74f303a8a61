//! A server that wants tokens: refused, signed in with `--paste`, called, signed out.

use std::process::Stdio;

use roundtrip_interop::browser::visit;
use roundtrip_interop::report::{Failure, Report, expect};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::command::{Roundtrip, says};

const ALICE: &str = "alice";

pub(crate) async fn check(report: &mut Report, roundtrip: &Roundtrip) {
    report.check("call without tokens", refused(roundtrip, "whoami")).await;
    report.check("login --paste", signs_in(roundtrip, &[])).await;
    report.check("call whoami", called(roundtrip, "whoami", ALICE)).await;
    report.check("list, with the same tokens", listed(roundtrip)).await;
    report.check("whoami", known(roundtrip)).await;
    report.check("logout, call", signs_out(roundtrip)).await;
}

/// Checks a tool that needs more scopes than the server does.
pub(crate) async fn check_scopes(report: &mut Report, roundtrip: &Roundtrip) {
    report.check("login --paste", signs_in(roundtrip, &[])).await;
    report.check("call write without its scope", refused(roundtrip, "write")).await;
    report.check("login --paste --scope", signs_in(roundtrip, &["--scope", "mcp:write"])).await;
    report.check("call write", called(roundtrip, "write", "written by alice")).await;
    report.check("call publish --answers", answered(roundtrip)).await;
}

/// Checks that a call says how to sign in.
async fn refused(roundtrip: &Roundtrip, tool: &str) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &[tool, "--args", "{}", "--json"]).await?.exits(5)?;
    let login = ran.error()?["login"].to_string();
    expect(login.contains("roundtrip login"), || format!("got {ran:?}"))?;
    Ok(login)
}

/// Signs in as a person whose browser is elsewhere: reads the page, visits it, pastes the address.
async fn signs_in(roundtrip: &Roundtrip, options: &[&str]) -> Result<String, Failure> {
    let words = [&["login", roundtrip.url()?, "--paste", "--file"], options].concat();
    let mut command = roundtrip.command(&words);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(process.stderr.take().ok_or("no standard error")?).lines();
    let mut said = String::new();
    let page = loop {
        let line = lines.next_line().await?.ok_or_else(|| format!("no page in {said}"))?;
        said.push_str(&line);
        if let Some(page) = line.split_whitespace().find(|word| word.contains("code_challenge=")) {
            break page.to_owned();
        }
    };
    let mut address = visit(ALICE, &[&page]).await?;
    address.push('\n');
    let mut stdin = process.stdin.take().ok_or("no standard input")?;
    stdin.write_all(address.as_bytes()).await?;
    drop(stdin);
    let mut last = String::new();
    while let Some(line) = lines.next_line().await? {
        if line.contains("signed in to") {
            last = line.clone();
        }
        said.push_str(&line);
    }
    let status = process.wait().await?;
    expect(status.success() && !last.is_empty(), || format!("{status}: {said}"))?;
    Ok(last)
}

async fn called(roundtrip: &Roundtrip, tool: &str, text: &str) -> Result<String, Failure> {
    says(&roundtrip.run(&["call"], &[tool, "--args", "{}", "--json"]).await?.exits(0)?, text)
}

async fn listed(roundtrip: &Roundtrip) -> Result<String, Failure> {
    Ok(roundtrip.run(&["list"], &["--only", "tools"]).await?.exits(0)?.out)
}

async fn known(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let who = roundtrip.run(&["whoami"], &["--json"]).await?.exits(0)?.json()?;
    expect(who["keptIn"] == "file", || format!("got {who}"))?;
    Ok(who["scopes"].to_string())
}

async fn signs_out(roundtrip: &Roundtrip) -> Result<String, Failure> {
    roundtrip.run(&["logout"], &[]).await?.exits(0)?;
    refused(roundtrip, "whoami").await
}

/// Checks a flow whose last round needs the scope.
async fn answered(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.answered(&["call"], &["publish"]).await?.exits(0)?;
    says(&ran, "true true by alice, drafted at one, sent from one")
}

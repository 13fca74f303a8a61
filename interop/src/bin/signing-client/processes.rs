//! Several processes on one file store.

use std::io::Read as _;
use std::process::{Command, ExitCode, Output, Stdio};

use roundtrip::oauth::store::FileStore;
use roundtrip::oauth::{OAuth, Pending};
use roundtrip::{Client, Error};
use roundtrip_interop::browser::visit;
use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::{Value, json};

use crate::person::{ALICE, Person};
use crate::{call, is_called, issuer};

/// Processes that find one token due.
const PROCESSES: usize = 4;

/// O80: processes that share a store renew a rotating token once among them.
pub(crate) async fn one_exchange(report: &mut Report, url: &str) -> Result<(), Failure> {
    let (store, person) = (std::env::var("STORE")?, Person::default());
    issuer::set_seconds(2).await?; // due for every process that reads it
    let client = Client::http(url)?.oauth(person.at(agent(&store)?));
    report
        .check("signs in", async {
            is_called(&client, ALICE).await?;
            Ok("into a file".into())
        })
        .await;
    client.close().await;
    issuer::set_seconds(300).await?;
    report
        .check("processes on one store", async {
            let before = issuer::exchanges("refresh_token").await?;
            for said in part_of_many(url, &store).await? {
                expect(said == json!(ALICE), || format!("a process says {said}"))?;
            }
            let made = issuer::exchanges("refresh_token").await? - before;
            expect(made == 1, || format!("{made} exchanges"))?;
            Ok(format!("{PROCESSES} calls, one exchange"))
        })
        .await;
    Ok(())
}

async fn part_of_many(url: &str, store: &str) -> Result<Vec<Value>, Failure> {
    let running: Vec<_> = (0..PROCESSES).map(|_| spawn("call", url, store, Value::Null)).collect();
    let mut said = Vec::new();
    for process in running {
        said.push(process.await??);
    }
    Ok(said)
}

/// O73: a sign-in that one process began is finished by another, and used by a third.
pub(crate) async fn finished_elsewhere(report: &mut Report, url: &str) -> Result<(), Failure> {
    let store = std::env::var("STORE")?;
    report
        .check("a sign-in begun in one process and finished in another", async {
            let begun = spawn("begin", url, &store, Value::Null).await??;
            let came_back = visit(ALICE, &[begun["url"].as_str().ok_or("no URL")?]).await?;
            let finish = json!({ "pending": begun["pending"], "came_back": came_back });
            let said = spawn("finish", url, &store, finish).await??;
            expect(said == json!(ALICE), || format!("the second process says {said}"))?;
            let said = spawn("call", url, &store, Value::Null).await??;
            expect(said == json!(ALICE), || format!("the third process says {said}"))?;
            Ok("as alice".into())
        })
        .await;
    Ok(())
}

fn agent(store: &str) -> Result<OAuth, Failure> {
    Ok(OAuth::new("Roundtrip").store(FileStore::open(store)?.account(ALICE)))
}

/// Starts a part of a check as a process of its own. Returns the JSON it prints.
fn spawn(
    part: &str,
    url: &str,
    store: &str,
    input: Value,
) -> tokio::task::JoinHandle<Result<Value, Failure>> {
    let words = ["part", part, url, store].map(str::to_owned);
    tokio::task::spawn_blocking(move || {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        serde_json::to_writer(child.stdin.take().ok_or("no stdin")?, &input)?;
        let Output { status, stdout, .. } = child.wait_with_output()?;
        expect(status.success(), || format!("a process ended with {status}"))?;
        Ok(serde_json::from_slice(&stdout)?)
    })
}

/// Runs a part of a check: standard input has its JSON, standard output gets the result's.
pub(crate) async fn part(part: &str, url: &str, store: &str) -> Result<ExitCode, Failure> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let input: Value = serde_json::from_str(&input)?;
    let client = Client::http(url)?.oauth(agent(store)?);
    let said = match part {
        "call" => json!(call(&client, "whoami").await?),
        "begin" => match call(&client, "whoami").await {
            Err(Error::SignIn(pending)) => json!({ "url": pending.url().as_str(), "pending": pending }),
            other => return Err(format!("no sign-in: {other:?}").into()),
        },
        "finish" => {
            let pending: Pending = serde_json::from_value(input["pending"].clone())?;
            client.sign_in(pending.answered(input["came_back"].as_str().ok_or("no URL")?)?).await?;
            json!(call(&client, "whoami").await?)
        }
        other => return Err(format!("no such part: {other}").into()),
    };
    println!("{said}");
    Ok(ExitCode::SUCCESS)
}

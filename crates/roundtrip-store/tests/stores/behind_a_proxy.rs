//! Instances behind nginx, which are killed while flows run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use roundtrip::client::{Pending, Turn};
use roundtrip::server::Step;
use roundtrip::{Args, Ask, Client, Error, Form, Keyring, Server, State, Tool, ToolError};
use roundtrip_store::Sqlite;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::processes::{Effects, Fleet, KEYS, LOG, Running, STORE};
use crate::support::{SqliteSite, address, unique};

/// Variable with the port of an instance: nginx finds it there again after it was killed.
const PORT: &str = "ROUNDTRIP_TEST_PORT";

const FLOWS: usize = 2_000;
const AT_ONCE: usize = 24;
const INSTANCES: usize = 3;
const PAYMENT: Duration = Duration::from_millis(20);

#[derive(Deserialize, JsonSchema)]
struct Order {
    order: String,
}

#[derive(Form)]
struct Amount {
    amount: u32,
}

/// Asks twice, and pays with the key of its step.
async fn pay(
    Args(Order { order }): Args<Order>,
    ask: Ask,
    State(effects): State<Effects>,
) -> Result<String, ToolError> {
    let Amount { amount } = ask.form("amount", "How much?").await?;
    ask.confirm("sure", format!("Pay {amount}?")).await?;
    let paid = ask.once("pay", async |step: Step| {
        effects.append(&format!("{order} {}", step.idempotency_key()));
        // A payment takes a moment: kills find some under way, however quick the rest is.
        tokio::time::sleep(PAYMENT).await;
        Ok::<_, ToolError>(amount)
    });
    Ok(format!("{order} paid {}", paid.await?))
}

/// Serves until the process is killed. Only a server process gets past the first line.
async fn serve() -> bool {
    let Ok(port) = std::env::var(PORT) else { return false };
    let ring = || KEYS.parse::<Keyring>().expect("keys");
    let opening = Sqlite::open(std::env::var(STORE).expect("a file")).sealed_by(ring());
    let ledger = opening.lease(Duration::from_secs(1)).await.expect("a store");
    let effects = Effects(std::env::var_os(LOG).expect("a log").into());
    let server = Server::new("shop", "1").tool(Tool::new("pay", pay)).state(effects).seal(ring());
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    server.ledger(ledger).serve_http(format!("127.0.0.1:{port}")).await.expect("an end in good order");
    true
}

/// An nginx process; it ends with its owner.
struct Nginx {
    _process: Child,
    client: Client,
}

impl Nginx {
    /// Starts nginx before instances. A request that an instance may have got is not given to another: whether it may be sent
    /// again is for the client to decide.
    async fn before(program: &str, folder: &Path, instances: &[u16]) -> Self {
        let port = free_port();
        let upstream: String = instances
            .iter()
            .map(|port| format!("server 127.0.0.1:{port} max_fails=1 fail_timeout=1s; "))
            .collect();
        let settings = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr;
            events {{ worker_connections 1024; }}
            http {{
                access_log off;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                upstream instances {{ {upstream} keepalive 16; }}
                server {{
                    listen 127.0.0.1:{port};
                    location / {{
                        proxy_pass http://instances;
                        proxy_http_version 1.1;
                        proxy_set_header Connection \"\";
                        proxy_set_header Host $http_host;
                        proxy_connect_timeout 2s;
                    }}
                }}
            }}"
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, settings).expect("a file");
        let process = Command::new(program)
            .args(["-e", "stderr", "-p"])
            .arg(folder)
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("nginx");
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let client = Client::http(format!("http://127.0.0.1:{port}/mcp")).expect("a URL");
        Self { _process: process, client }
    }
}

/// A port that nothing listens at just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

async fn start(fleet: &Fleet, port: u16) -> Running {
    let mut command = fleet.command(false);
    command.env(PORT, port.to_string());
    Fleet::launch(command).await
}

/// Returns whether an error has a name that says: send the same again.
fn may_be_sent_again(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Refused(refusal) => matches!(refusal.status.as_u16(), 502..=504),
        Error::Rejected(rejection) => rejection.error().code == 503,
        _ => false,
    }
}

fn amount_of(number: usize) -> usize {
    number * 7 + 1
}

fn answered(pending: Pending, number: usize) -> Pending {
    let (key, answer) = match pending.questions().next().expect("a question").key() {
        "amount" => ("amount", json!({ "amount": amount_of(number) })),
        _ => ("sure", json!({ "confirm": true })),
    };
    pending.answer(key, answer).expect("an answer")
}

/// Runs a flow to its end, and sends each round again until it is answered. Returns its reply, and the number of failures.
async fn flow(client: Client, number: usize) -> (usize, String, usize) {
    let (order, key) = (format!("order-{number}"), unique());
    let (mut pending, mut failures) = (None::<Pending>, 0);
    loop {
        let turn = match &pending {
            None => {
                let call = client.call_tool("pay", json!({ "order": order }));
                call.idempotency_key(&key).one_round().await
            }
            Some(pending) => client.resume(pending.clone()).await,
        };
        match turn {
            Ok(Turn::Done(result)) => return (number, result.text(), failures),
            Ok(Turn::Asked(asked)) => pending = Some(answered(asked, number)),
            Ok(other) => panic!("{order}: {other:?}"),
            Err(error) => {
                assert!(may_be_sent_again(&error), "{order}: {error:?}");
                failures += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Kills instances one after the other, and starts them again, until it is dropped. Returns never.
async fn kill(fleet: &Fleet, mut instances: Vec<(u16, Running)>, kills: &mut usize) {
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let chosen = rand_below(instances.len());
        let (port, running) = &mut instances[chosen];
        running.process.kill().await.expect("its end");
        *kills += 1;
        *running = start(fleet, *port).await;
    }
}

fn rand_below(most: usize) -> usize {
    let mut byte = [0];
    getrandom::fill(&mut byte).expect("randomness");
    usize::from(byte[0]) % most
}

/// Z4: three instances behind nginx are killed at random while thousands of flows run: every flow ends with the right answer, each
/// failure on the way has a name that says to send the same again, and no payment is made under two keys.
async fn flows_outlive_their_instances(program: &str) {
    let site = SqliteSite::new();
    let fleet =
        Fleet::new("behind_a_proxy::flows_outlive_instances_behind_nginx", site.file().display().to_string());
    let ports: [u16; INSTANCES] = std::array::from_fn(|_| free_port());
    let mut instances = Vec::new();
    for port in ports {
        instances.push((port, start(&fleet, port).await));
    }
    let nginx = Nginx::before(program, &site.folder, &ports).await;
    let (mut kills, mut replies, mut failures) = (0, BTreeMap::new(), 0);
    let running = async {
        let (mut flows, mut begun) = (JoinSet::new(), 0);
        while replies.len() < FLOWS {
            while begun < FLOWS && flows.len() < AT_ONCE {
                flows.spawn(flow(nginx.client.clone(), begun));
                begun += 1;
            }
            let (number, reply, failed) = flows.join_next().await.expect("a flow").expect("its end");
            failures += failed;
            replies.insert(number, reply);
        }
    };
    tokio::select! {
        () = running => {}
        () = kill(&fleet, instances, &mut kills) => {}
    }
    assert!(kills >= 10 && failures > 0, "{kills} kills, {failures} failures");
    for (number, reply) in &replies {
        assert_eq!(*reply, format!("order-{number} paid {}", amount_of(*number)));
    }
    let effects = fleet.effects.lines();
    let payments: BTreeSet<&String> = effects.iter().collect();
    assert_eq!((replies.len(), payments.len()), (FLOWS, FLOWS), "one key for each payment");
    // A round that died with its instance runs again: no more often than requests failed.
    assert!(effects.len() - payments.len() <= failures, "{} payments, {failures} failures", effects.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_outlive_instances_behind_nginx() {
    if !serve().await
        && let Some(program) = address("ROUNDTRIP_TEST_NGINX")
    {
        flows_outlive_their_instances(&program).await;
    }
}

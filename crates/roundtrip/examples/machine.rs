//! Lists the tools of a server as a program without a person: `cargo run -p roundtrip --example machine URL ISSUER ID KEY.pem`.
//!
//! The client was registered by hand with that issuer, by the public half of the key. A client with a secret
//! says `.secret(..)` in place of `.key(..)`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::Client;
use roundtrip::oauth::OAuth;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, issuer, id, file] = &arguments[..] else {
        return Err("usage: machine URL ISSUER ID KEY.pem".into());
    };
    let sign_in = OAuth::machine(id).key(std::fs::read_to_string(file)?)?.issuer(issuer);
    let client = Client::http(url)?.oauth(sign_in);
    for tool in client.list_tools().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    Ok(())
}

//! Lists the tools of a server that wants a token: `cargo run -p roundtrip --example sign-in URL`.
//!
//! The person opens the URL that is printed; the program waits for the browser at a port of this machine. Tokens are kept in
//! the folder `tokens`, so that the next run needs no sign-in. With `--paste` nothing waits: the person pastes the URL that the
//! browser ends at.

#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::io;

use roundtrip::oauth::store::FileStore;
use roundtrip::oauth::{HttpUrl, OAuth, Pending};
use roundtrip::{Client, Error};

/// Shows the URL. A desktop application opens its browser here, without a shell.
async fn show(url: HttpUrl) -> io::Result<()> {
    println!("open {url}");
    Ok(())
}

/// Finishes a sign-in with the URL that the person pastes.
async fn paste(client: &Client, pending: &Pending) -> Result<(), Box<dyn std::error::Error>> {
    println!("open {}\nand paste the URL that it ends at:", pending.url());
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    client.sign_in(pending.answered(line.trim())?).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let url =
        arguments.iter().find(|argument| !argument.starts_with('-')).ok_or("usage: sign-in [--paste] URL")?;
    let sign_in = OAuth::new("Roundtrip example").store(FileStore::open("tokens")?);
    let pastes = arguments.iter().any(|argument| argument == "--paste");
    let client = Client::http(url)?.oauth(if pastes { sign_in } else { sign_in.browser(show) });
    let tools = match client.list_tools().await {
        Err(Error::SignIn(pending)) => {
            paste(&client, &pending).await?;
            client.list_tools().await?
        }
        listed => listed?,
    };
    for tool in tools {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    Ok(())
}

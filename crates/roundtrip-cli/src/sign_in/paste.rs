//! Sign-ins on machines without a browser: the user brings the address back.

use std::io::{BufRead as _, Read as _};

use roundtrip::oauth::{CallbackError, Pending};
use roundtrip::{Client, Error};

use crate::ask::{page, terminal};
use crate::exit::{Exit, Failure};
use crate::output::err;

/// Greatest length of an address, in bytes. Longer ones are refused by the library.
const MAX_ADDRESS: u64 = 64 * 1024;

/// Shows the page, reads the address that the browser ended at, and finishes the sign-in.
pub(crate) async fn paste(client: &Client, pending: &Pending) -> Result<(), Failure> {
    err!("Open this page in a browser, on any machine, and sign in:");
    page::show(pending.url().as_str());
    err!(
        "The browser ends at a page that does not load. Paste its address here; it begins with\n  {}",
        pending.redirect_uri()
    );
    loop {
        match pending.answered(address().await?.trim()) {
            Ok(answered) => return Ok(client.sign_in(answered).await?),
            Err(CallbackError::NotOurs) if terminal::is_there() => {
                err!("this is not the address of this sign-in: paste all of it");
            }
            Err(error) => return Err(Error::from(error).into()),
        }
    }
}

/// Reads an address. A terminal is asked key by key: its own lines end at 4096 bytes.
async fn address() -> Result<String, Failure> {
    if terminal::is_there() {
        return terminal::prompted(|| inquire::Text::new("Address:").prompt()).await;
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = std::io::stdin().lock().take(MAX_ADDRESS).read_line(&mut line);
        read.map(|_| line)
    });
    match read.await {
        Ok(Ok(line)) if !line.trim().is_empty() => Ok(line),
        _ => Err(Failure::new(Exit::SignIn, "no address was pasted")),
    }
}

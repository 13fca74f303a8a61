//! The browser of those who sign in, which is a command.

use std::process::Command;

use crate::report::Failure;

/// Runs the browser of a user: the command in `BROWSER`, with a URL and more. Returns the URL that it ended at.
///
/// # Errors
/// A browser that is missing or fails.
pub async fn visit(name: &str, arguments: &[&str]) -> Result<String, Failure> {
    let browser = std::env::var("BROWSER")?;
    let mut words = browser.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).args(arguments).env("LOGIN", name);
    let said = tokio::task::spawn_blocking(move || command.output()).await??;
    if !said.status.success() {
        return Err(format!("the browser: {}", String::from_utf8_lossy(&said.stderr)).into());
    }
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

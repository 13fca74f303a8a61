//! The built `roundtrip` command against a server on another SDK, and against its own: every check is a run of the command, whose
//! output and exit code are compared.
//!
//! `command-client CHECK http URL`, or `command-client CHECK stdio COMMAND [ARGUMENT ..]`. `ROUNDTRIP` in the environment is the
//! command. `CHECK` is `asking` or `tasks` (with `-handshake` where the server has nothing newer), or `own`; `sign-in` and `scopes`
//! are for servers that want tokens, and `BROWSER` signs in. Prints one line per check; the last line is `N passed, M failed`.

mod asking;
mod command;
mod own;
mod sign_in;
mod tasks;

use std::process::ExitCode;

use command::Roundtrip;
use roundtrip_interop::report::{Failure, Report};

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let mut words = std::env::args().skip(1);
    let check = words.next().unwrap_or_default();
    let roundtrip = Roundtrip::at(&words.collect::<Vec<_>>())?;
    let mut report = Report::default();
    match check.as_str() {
        "asking" => asking::check(&mut report, &roundtrip, false).await,
        "asking-handshake" => asking::check(&mut report, &roundtrip, true).await,
        "tasks" => tasks::check(&mut report, &roundtrip, false).await,
        "tasks-handshake" => tasks::check(&mut report, &roundtrip, true).await,
        "own" => own::check(&mut report, &roundtrip).await,
        "sign-in" => sign_in::check(&mut report, &roundtrip).await,
        "scopes" => sign_in::check_scopes(&mut report, &roundtrip).await,
        other => return Err(format!("there is no check `{other}`").into()),
    }
    Ok(report.conclude())
}

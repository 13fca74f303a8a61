//! The built `roundtrip` command against a server on another SDK, and against its own: every check is a run of the command, whose
//! output and exit code are compared.
//!
//! `command-client CHECK http URL`, or `command-client CHECK stdio COMMAND [ARGUMENT ..]`. `ROUNDTRIP` in the environment is the
//! command. `CHECK` is `asking` (`asking-handshake` where the server has nothing newer), `tasks` or `own`. Prints one line per
//! check; the last line is `N passed, M failed`.

mod asking;
mod command;
mod own;
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
        "tasks" => tasks::check(&mut report, &roundtrip).await,
        "own" => own::check(&mut report, &roundtrip).await,
        other => return Err(format!("there is no check `{other}`").into()),
    }
    Ok(report.conclude())
}

//! Ctrl-C, deadlines and terminals that go away: the work is dropped, which cancels its requests.

use std::time::Duration;

use crate::ask::terminal;
use crate::exit::{Exit, Failure};
use crate::output;

/// Waits for work, until the user interrupts it or is gone, or its time is over.
pub(crate) async fn until<T>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let over = async {
        match deadline {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        result = work => return result,
        () = ended() => Failure::interrupted(),
        () = terminal::gone() => return Err(Failure::told(Exit::Interrupted)),
        // The command reports it at its end.
        () = output::broken() => Failure::told(Exit::Failed),
        () = over => Failure::new(Exit::GaveUp, format!("not done within {:?}", deadline.unwrap_or_default())),
    };
    terminal::restore();
    Err(result)
}

/// Waits for Ctrl-C, or for a signal to end.
pub(crate) async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

//! Ctrl-C, deadlines and terminals that go away: the work is dropped, which cancels its requests.

use std::time::{Duration, Instant};

use crate::ask::terminal;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::server::seconds;

/// Time for a whole command, which has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    time: Duration,
    began: Instant,
}

/// Reads the time for a command, which begins now.
pub(crate) fn deadline(text: &str) -> Result<Deadline, String> {
    Ok(Deadline { time: seconds(text)?, began: Instant::now() })
}

/// Waits for work, until the user interrupts it or is gone, or its time is over.
pub(crate) async fn until<T>(
    deadline: Option<Deadline>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let over = async {
        match deadline {
            Some(Deadline { time, began }) => {
                tokio::time::sleep(time.saturating_sub(began.elapsed())).await;
                time
            }
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        // Signals are heard before the work begins.
        biased;
        () = ended() => Failure::interrupted(),
        result = work => return result,
        () = terminal::gone() => return Err(Failure::told(Exit::Interrupted)),
        // The command reports it at its end.
        () = output::broken() => Failure::told(Exit::Failed),
        time = over => Failure::new(Exit::GaveUp, format!("not done within {time:?}")),
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

//! Ctrl-C, deadlines and terminals that go away: the work is dropped, which cancels its requests.

#[cfg(unix)]
use std::task::Poll;
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

/// Waits for work that ends a command, such as storing tokens that were asked for. Ctrl-C, once more, does not wait; returns `None`
/// then.
pub(crate) async fn unless_insisted<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = insisted() => None,
    }
}

/// Listens for Ctrl-C and other signals to end, from now on. Returns a future that waits for the first. SIGHUP is among them, by
/// which the system says that the controlling terminal is closed, unless the command was started to ignore it.
pub(crate) fn ended() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    return any_of(signals(!ignores_hang_ups()));
    #[cfg(not(unix))]
    return ctrl_c();
}

/// Listens for signals of somebody who does not want to wait any more. SIGHUP says nothing of the kind: a window that is closed may
/// send two, and its terminal may be seen to go before the first.
fn insisted() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    return any_of(signals(false));
    #[cfg(not(unix))]
    return ctrl_c();
}

async fn ctrl_c() {
    let _ = tokio::signal::ctrl_c().await;
}

/// Waits for the first of some signals.
#[cfg(unix)]
async fn any_of(signals: std::io::Result<Vec<tokio::signal::unix::Signal>>) {
    let Ok(mut signals) = signals else { return ctrl_c().await };
    std::future::poll_fn(|cx| {
        let is_heard = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if is_heard { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Listens for the signals that end a command.
#[cfg(unix)]
fn signals(with_hang_ups: bool) -> std::io::Result<Vec<tokio::signal::unix::Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let hangup = with_hang_ups.then(SignalKind::hangup);
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()];
    kinds.into_iter().chain(hangup).map(signal).collect()
}

/// Returns whether the process was started to ignore SIGHUP, as `nohup` does. Listening would change that, so the answer is kept
/// from the first time. Only Linux says it without unsafe code; elsewhere a hang-up ends the command.
#[cfg(unix)]
fn ignores_hang_ups() -> bool {
    static IGNORES: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IGNORES.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // SIGHUP is the first signal.
        ignored.is_some_and(|mask| mask & 1 == 1)
    })
}

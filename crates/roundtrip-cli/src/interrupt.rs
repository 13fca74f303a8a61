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

/// Listens for Ctrl-C and other signals to end, from now on. Returns a future that waits for the first.
pub(crate) fn ended() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    let mut signals = ends().unwrap_or_default();
    async move {
        #[cfg(unix)]
        if !signals.is_empty() {
            let any = std::future::poll_fn(|cx| {
                let is_heard = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
                if is_heard { Poll::Ready(()) } else { Poll::Pending }
            });
            return any.await;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Listens for the signals that end a command. SIGHUP is among them, by which the system says that the controlling terminal is
/// closed, unless the command was started to ignore it.
#[cfg(unix)]
fn ends() -> std::io::Result<Vec<tokio::signal::unix::Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let hangup = (!ignores_hang_ups()).then(SignalKind::hangup);
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

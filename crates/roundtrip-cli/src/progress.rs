//! Progress in the terminal: a spinner with the time, bars, the status of a task, parts of a result.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use roundtrip::wire::{ContentBlock, ProgressNotificationParams, Task};

use crate::output::{Printed, err};
use crate::printable::printable;

/// Time between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// Display of one call.
#[derive(Clone)]
pub(crate) struct Progress {
    /// Spinner or bar of what is waited for now.
    bar: Arc<Mutex<ProgressBar>>,
    is_shown: bool,
    /// True if parts of a result are printed as they come.
    prints_parts: bool,
    /// Parts printed so far.
    printed: Arc<Mutex<Printed>>,
}

impl Progress {
    /// Creates a display. It is quiet without a terminal, and for programs.
    pub(crate) fn new(is_quiet: bool) -> Self {
        let is_shown = !is_quiet && std::io::stderr().is_terminal();
        Self {
            bar: Arc::new(Mutex::new(ProgressBar::hidden())),
            is_shown,
            prints_parts: !is_quiet,
            printed: Arc::default(),
        }
    }

    /// Begins to wait for something. Beside parts of a result there is no room for a spinner.
    pub(crate) fn wait_for(&self, what: &str) {
        self.clear();
        if self.is_shown && self.printed().is_empty() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style("{spinner} {elapsed} {wide_msg}"));
            bar.set_message(printable(what));
            bar.enable_steady_tick(TICK);
            *lock(&self.bar) = bar;
        }
    }

    fn bar(&self) -> ProgressBar {
        lock(&self.bar).clone()
    }

    /// Clears the display, so that something else can be shown.
    pub(crate) fn clear(&self) {
        self.bar().finish_and_clear();
    }

    /// Returns a function that clears the display: for questions in the middle of a request.
    pub(crate) fn clearing(&self) -> impl Fn() + Send + Sync + 'static {
        let bar = Arc::clone(&self.bar);
        move || lock(&bar).finish_and_clear()
    }

    /// Ends the line of parts that have been printed, where something else is shown on the same screen.
    pub(crate) fn end_line(&self) {
        if self.is_shown && std::io::stdout().is_terminal() && self.printed().is_inside_line() {
            err!("");
        }
    }

    /// Returns a hook for progress notifications.
    pub(crate) fn on_progress(&self) -> impl FnMut(ProgressNotificationParams) + Send + 'static {
        let bar = self.bar();
        move |step| {
            if let Some(total) = step.total.filter(|total| *total > 0.0) {
                // Thousandths, as both numbers may be fractions.
                bar.set_style(style("{spinner} {elapsed} [{bar:20}] {percent}% {wide_msg}"));
                bar.set_length(1000);
                bar.set_position((1000.0 * (step.progress / total).clamp(0.0, 1.0)) as u64);
            }
            let message = step.message.as_deref().map_or_else(|| step.progress.to_string(), printable);
            bar.set_message(message);
        }
    }

    /// Returns a hook for the status of a task.
    pub(crate) fn on_status(&self) -> impl FnMut(&Task) + Send + 'static {
        let bar = self.bar();
        move |task| {
            let why = task.status_message.as_deref().unwrap_or_default();
            bar.set_message(printable(&format!("task {} {}: {why}", task.task_id, task.status)));
        }
    }

    /// Returns a hook that prints the parts of a result, if they are wanted.
    pub(crate) fn on_part(&self) -> Option<impl FnMut(ContentBlock) + Send + 'static> {
        let (bar, printed) = (self.bar(), Arc::clone(&self.printed));
        self.prints_parts.then_some(move |part: ContentBlock| {
            // A spinner would be drawn over a line that is not complete.
            bar.finish_and_clear();
            lock(&printed).print(part);
        })
    }

    /// Returns the parts that have been printed.
    pub(crate) fn printed(&self) -> MutexGuard<'_, Printed> {
        lock(&self.printed)
    }
}

/// Locks a value that is whole whatever happened to its last user.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a style in ASCII, which every terminal has. A message takes what is left of the row, and no more.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.tick_chars("-\\|/ ").progress_chars("=> ")
}

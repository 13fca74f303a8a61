//! The terminal: whether there is one, and its single prompts.

use std::io::{IsTerminal, Write as _};

use inquire::error::InquireError;
use inquire::ui::{RenderConfig, Styled};
use inquire::{Password, PasswordDisplayMode, Select, Text, set_global_render_config};
#[cfg(unix)]
use rustix::event::{PollFd, PollFlags};
#[cfg(unix)]
use rustix::io::Errno;
#[cfg(unix)]
use {std::os::fd::AsFd, std::sync::LazyLock, tokio::sync::watch};

use crate::exit::{Exit, Failure};
use crate::printable::printable;
use crate::rows::Screen;

/// Returns whether there is somebody to ask: keys come from a terminal, and prompts go to one. Results may go elsewhere.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Waits until the terminal goes away. A process of which it is not the controlling terminal gets no signal then, and prompts
/// would read its end over and over.
pub(crate) async fn gone() {
    #[cfg(unix)]
    if *WAS_THERE && HANG_UP.clone().wait_for(|gone| *gone).await.is_ok() {
        return;
    }
    std::future::pending::<()>().await;
}

/// True if there was a terminal when it was first looked for. Later it may have gone, and is none any more.
#[cfg(unix)]
static WAS_THERE: LazyLock<bool> = LazyLock::new(is_there);

/// True once the terminal has gone. One thread waits for all prompts, and ends with the terminal or with the process.
#[cfg(unix)]
static HANG_UP: LazyLock<watch::Receiver<bool>> = LazyLock::new(|| {
    let (told, gone) = watch::channel(false);
    std::thread::spawn(move || {
        if hung_up().is_ok() {
            let _ = told.send(true);
        }
    });
    gone
});

/// Blocks until the other end of the terminal is closed. Keys are left to the prompts.
#[cfg(unix)]
fn hung_up() -> rustix::io::Result<()> {
    let stdin = std::io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
    loop {
        match rustix::event::poll(&mut ends, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether an error of writing says that the terminal has gone. Other devices have the same error for other reasons.
#[cfg(unix)]
pub(crate) fn is_hang_up(error: &std::io::Error) -> bool {
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let mut ends =
        [&stdout as &dyn AsFd, &stderr].map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::empty()));
    let now = rustix::event::Timespec::default();
    Errno::from_io_error(error) == Some(Errno::IO)
        && rustix::event::poll(&mut ends, Some(&now)).is_ok()
        && ends.iter().any(|end| end.revents().contains(PollFlags::HUP))
}

#[cfg(not(unix))]
pub(crate) fn is_hang_up(_: &std::io::Error) -> bool {
    false
}

/// Runs prompts where they block no other task.
pub(crate) async fn prompted<T: Send + 'static>(
    prompts: impl FnOnce() -> Result<T, InquireError> + Send + 'static,
) -> Result<T, Failure> {
    blocking(|| prompts().map_err(failure)).await
}

/// Runs work that may prompt, or wait for standard input, where it blocks no other task.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(|| {
        set_global_render_config(
            RenderConfig::default().with_canceled_prompt_indicator(Styled::new("<not answered>")),
        );
        work()
    });
    done.await.unwrap_or_else(|error| Err(Failure::new(Exit::Failed, error.to_string())))
}

/// Creates the error of a prompt that was not answered.
pub(crate) fn failure(error: InquireError) -> Failure {
    match error {
        InquireError::OperationInterrupted => Failure::interrupted(),
        InquireError::IO(error) if is_hang_up(&error) => Failure::told(Exit::Interrupted),
        InquireError::OperationCanceled => Failure::new(Exit::Declined, "cancelled"),
        error => Failure::new(Exit::Failed, format!("the terminal cannot be used: {error}")),
    }
}

/// Restores a terminal whose prompt is given up from outside.
pub(crate) fn restore() {
    if crossterm::terminal::is_raw_mode_enabled().unwrap_or(false) {
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = crossterm::execute!(
            std::io::stderr(),
            crossterm::event::DisableBracketedPaste,
            crossterm::cursor::Show
        );
        // The terminal may be the reason.
        let _ = writeln!(std::io::stderr());
    }
}

/// Asks for one line of text. A default is shown printable, and returned as it is.
pub(crate) fn line(prompt: &str, default: Option<&str>) -> Result<String, InquireError> {
    let (prompt, shown) = (name(prompt), default.map(name));
    let mut text = Text::new(&prompt);
    text.default = shown.as_deref();
    let typed = text.prompt()?;
    Ok(default.filter(|_| shown.as_ref() == Some(&typed)).map_or(typed, str::to_owned))
}

/// Asks for a secret, which is not shown.
pub(crate) fn secret(prompt: &str) -> Result<String, InquireError> {
    let prompt = name(prompt);
    Password::new(&prompt).without_confirmation().with_display_mode(PasswordDisplayMode::Masked).prompt()
}

/// Returns a text of a file for a prompt on one row.
fn name(text: &str) -> String {
    Screen::Err.name(&printable(text))
}

/// Asks for one of several texts, and returns its place.
pub(crate) fn pick(prompt: &str, options: &[&str], at: usize) -> Result<usize, InquireError> {
    let (prompt, options) = (name(prompt), options.iter().map(|option| name(option)).collect());
    Ok(Select::new(&prompt, options).with_starting_cursor(at).raw_prompt()?.index)
}

/// Asks for one of several things to do. Escape is the last of them.
pub(crate) fn choose<T: Copy>(prompt: &str, options: &[(&str, T)]) -> Result<T, InquireError> {
    let names = options.iter().map(|(name, _)| *name).collect();
    let last = options.len().saturating_sub(1);
    let picked = match Select::new(prompt, names).without_help_message().raw_prompt() {
        Ok(picked) => picked.index,
        Err(InquireError::OperationCanceled) => last,
        Err(error) => return Err(error),
    };
    options.get(picked).map(|(_, what)| *what).ok_or(InquireError::OperationCanceled)
}

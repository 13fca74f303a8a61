//! Texts of errors with their causes.

use std::error::Error;

/// Returns the text of an error with every cause it names: the outermost alone says next to nothing.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        // Some errors have the text of their cause in their own.
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = inner.source();
    }
    message
}

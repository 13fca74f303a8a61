//! `Debug` as text.

use std::error::Error;
use std::fmt;

/// Writes an error's text and the texts of its sources, as `Debug` of the errors that users meet at a prompt: `main`
/// and `unwrap` show `Debug`.
///
/// # Errors
/// If the formatter fails.
pub fn debug_as_text(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{error}")?;
    let mut source = error.source();
    if source.is_some() {
        f.write_str("\n\nCaused by:")?;
    }
    while let Some(cause) = source {
        write!(f, "\n    {cause}")?;
        source = cause.source();
    }
    Ok(())
}

//! Telling everything that is wrong at once.

use syn::Error;

/// What is wrong so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value; nothing, where it went wrong.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

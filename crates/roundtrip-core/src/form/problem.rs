//! Errors in an answer, in words its author can act on.

use std::fmt;

/// Greatest number of problems that are listed; beyond ten a list is no help.
const MOST: usize = 10;

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The field's name.
    pub field: String,
    /// The rule it breaks, such as `must be at most 12`.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Everything that is wrong with an answer: `people: must be at most 12; date: is required`.
///
/// The first ten are kept, the rest are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    told: Vec<Problem>,
    untold: usize,
}

impl Problems {
    /// Creates a single problem.
    pub fn one(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.add(&field.into(), message.into());
        problems
    }

    /// Iterates over the problems, in the order of the form's fields.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.told.iter()
    }

    pub(super) fn add(&mut self, field: &str, message: String) {
        if self.told.len() < MOST {
            self.told.push(Problem { field: field.to_owned(), message });
        } else {
            self.untold += 1;
        }
    }

    /// Returns an error if there is a problem.
    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.told.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.told.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        if self.untold > 0 {
            write!(f, "; and {} more", self.untold)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

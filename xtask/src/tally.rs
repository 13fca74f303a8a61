//! Counting what passed and what failed.

use std::fmt;

use anyhow::Result;

/// How many things were checked, and how it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Prints the last line of a command, and says whether it was green. A run that broke off failed: its
    /// reason is printed, and the last line still has its form.
    pub(crate) fn conclude(run: Result<Self>) -> bool {
        let tally = run.unwrap_or_else(|error| {
            println!("FAIL  {error:#}");
            Self { passed: 0, failed: 1 }
        });
        println!("{tally}");
        tally.is_green()
    }

    /// A run that checked nothing is not green.
    pub(crate) fn is_green(self) -> bool {
        self.passed > 0 && self.failed == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn an_empty_run_is_not_green() {
        assert!(!Tally::default().is_green());
        assert!(Tally { passed: 1, failed: 0 }.is_green());
        assert!(!Tally { passed: 9, failed: 1 }.is_green());
        assert_eq!(Tally { passed: 9, failed: 1 }.to_string(), "9 passed, 1 failed");
    }
}

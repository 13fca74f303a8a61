//! Versions of the tables, and the steps from one to the next (K5).

use std::time::Duration;

use crate::StoreError;

/// Longest time for the steps that a database needs, and for the wait while another instance makes them: a table may be large.
pub(crate) const MIGRATION_TIME: Duration = Duration::from_secs(30 * 60);

/// Warns of rows that an earlier release would not have written, if there were any: they are not tasks, and were left out.
pub(crate) fn warn_of_left_out(rows: i64) {
    if rows > 0 {
        tracing::warn!(rows, "rows of the table of tasks are not tasks: they were left out of the new table");
    }
}

/// Steps that make the tables. The first makes version 1 of nothing, the next version 2 of that, and so on: add steps, and never
/// change one that was released.
pub(crate) struct Migrations(pub(crate) &'static [&'static str]);

impl Migrations {
    /// Returns the steps that a database of this version needs, each with the version it makes.
    pub(crate) fn after(
        &self,
        found: i64,
    ) -> Result<impl Iterator<Item = (i64, &'static str)> + use<>, StoreError> {
        let known = i64::try_from(self.0.len()).unwrap_or(i64::MAX);
        if found > known {
            return Err(StoreError::NewerSchema { found, known });
        }
        Ok((1..).zip(self.0.iter().copied()).filter(move |(version, _)| *version > found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K5: a database gets the steps that it lacks, in order, and one of a later release is refused.
    #[test]
    fn a_database_gets_what_it_lacks() {
        let migrations = Migrations(&["a", "b", "c"]);
        let after = |version| migrations.after(version).map(Iterator::collect::<Vec<_>>);
        assert_eq!(after(0).unwrap(), [(1, "a"), (2, "b"), (3, "c")]);
        assert_eq!(after(2).unwrap(), [(3, "c")]);
        assert_eq!(after(3).unwrap(), []);
        let Err(StoreError::NewerSchema { found: 4, known: 3 }) = after(4) else { panic!("it is newer") };
    }
}

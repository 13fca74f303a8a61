//! Versions of the tables, and the steps from one to the next (K5).

use crate::StoreError;

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

//! Names that are near to a mistyped one.

use crate::printable::printable;

/// Greatest number of names that are compared and shown.
const COMPARED: usize = 10_000;
const SHOWN: usize = 3;

/// Returns a note with the names nearest to `wanted`; with none near, the first few names.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut near: Vec<(usize, &str)> =
        names.take(COMPARED).map(|name| (distance(wanted, name), name)).collect();
    if near.is_empty() {
        return ": it has none at all".to_owned();
    }
    near.sort_by_key(|(distance, _)| *distance);
    let is_near = |distance: usize| distance <= 1 + wanted.chars().count() / 3;
    let close: Vec<&str> = near.iter().filter(|(far, _)| is_near(*far)).map(|(_, name)| *name).collect();
    let listed = |names: &[&str]| {
        let names = names.iter().take(SHOWN).map(|name| format!("`{}`", printable(name)));
        names.collect::<Vec<_>>().join(", ")
    };
    if close.is_empty() {
        let all: Vec<&str> = near.iter().map(|(_, name)| *name).collect();
        let more = if all.len() > SHOWN { ", .." } else { "" };
        format!(": it has {}{more}", listed(&all))
    } else {
        format!(": did you mean {}?", listed(&close))
    }
}

/// Returns the number of characters to insert, remove or replace, without regard to case. Of long names only the beginnings count.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| -> Vec<char> { text.chars().take(64).flat_map(char::to_lowercase).collect() };
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, c) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (to, d) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(c != d);
            diagonal = row[to + 1];
            row[to + 1] = replaced.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered() {
        let names = ["book_table", "cancel_booking", "list_tables"];
        assert_eq!(nearest("book_tabel", names.into_iter()), ": did you mean `book_table`?");
        assert_eq!(nearest("Book_Table", names.into_iter()), ": did you mean `book_table`?");
        assert!(nearest("xyz", names.into_iter()).starts_with(": it has `"));
        assert_eq!(nearest("x", [].into_iter()), ": it has none at all");
    }

    #[test]
    fn distance_counts_changes() {
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("kitten", "sitting")), (3, 0, 3));
    }
}

//! The books: expenses by their owner. A database in real life.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An expense that has been booked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Expense {
    /// Number of the expense
    pub(crate) number: u32,
    /// Purpose of the expense
    pub(crate) purpose: String,
    /// Whole euros
    pub(crate) euros: u32,
    /// Month it belongs to, such as 2026-11
    pub(crate) month: String,
    pub(crate) category: Category,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, roundtrip::Choice)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Category {
    Travel,
    Meals,
    Other,
}

/// All expenses. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    /// By owner and number.
    expenses: BTreeMap<(String, u32), Expense>,
    /// Numbers by the idempotency key they were booked with.
    booked: HashMap<String, u32>,
}

impl Books {
    /// Books an expense, once for one idempotency key: a reply that was lost on its way is asked for again.
    pub(crate) fn book(&self, owner: &str, key: &str, mut expense: Expense) -> u32 {
        let mut books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = books.booked.get(key) {
            return *number;
        }
        expense.number = u32::try_from(books.expenses.len()).unwrap_or(u32::MAX) + 1;
        let number = expense.number;
        books.expenses.insert((owner.to_owned(), number), expense);
        books.booked.insert(key.to_owned(), number);
        number
    }

    /// Returns the expenses of an owner, of one month or of all.
    pub(crate) fn of(&self, owner: &str, month: Option<&str>) -> Vec<Expense> {
        let books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = books.expenses.iter().filter(|((of, _), _)| of == owner).map(|(_, expense)| expense);
        own.filter(|expense| month.is_none_or(|month| expense.month == month)).cloned().collect()
    }
}

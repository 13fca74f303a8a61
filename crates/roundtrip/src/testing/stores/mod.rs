//! Contracts of stores, as tests that a store of your own can be held to.
//!
//! ```
//! use std::sync::Arc;
//!
//! use roundtrip::testing::stores;
//! use roundtrip::{MemoryLedger, MemoryTasks};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), stores::ContractError> {
//! let ledger = MemoryLedger::new(); // two instances of yours, on one database
//! stores::ledger(ledger.clone(), ledger).await?;
//! stores::ledger_for_four(MemoryLedger::bounded(4, usize::MAX)).await?;
//!
//! let tasks = Arc::new(MemoryTasks::new());
//! stores::tasks(Arc::clone(&tasks), tasks).await
//! # }
//! ```

mod ledger;
mod tasks;
#[cfg(feature = "oauth")]
mod tokens;

use std::error::Error;
use std::time::Duration;

pub use ledger::{ledger, ledger_for_four};
pub use tasks::tasks;
#[cfg(feature = "oauth")]
pub use tokens::tokens;

/// Time within which a store answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Violation of a store's contract.
#[derive(Debug, thiserror::Error)]
#[error("{rule}: {found}")]
pub struct ContractError {
    rule: &'static str,
    found: String,
}

type Checked<T = ()> = Result<T, ContractError>;

async fn within<T>(rule: &'static str, future: impl Future<Output = T>) -> Checked<T> {
    tokio::time::timeout(PATIENCE, future)
        .await
        .or_else(|_| broken(rule, format!("no answer after {} s", PATIENCE.as_secs())))
}

fn broken<T>(rule: &'static str, found: String) -> Checked<T> {
    Err(ContractError { rule, found })
}

fn failed<T>(rule: &'static str, error: &dyn Error) -> Checked<T> {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    broken(rule, format!("{error}{cause}"))
}

fn random<const N: usize>() -> Checked<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).or_else(|error| broken("ids are drawn at random", error.to_string()))?;
    Ok(bytes)
}

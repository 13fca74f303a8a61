//! A file of a test's own.

use std::path::PathBuf;

use roundtrip_store::{Opening, Sqlite, StoreError, Usage};
use sqlx::{ConnectOptions as _, SqliteConnection};

use super::{Site, TaskSite};

pub(crate) struct SqliteSite {
    pub(crate) folder: PathBuf,
}

impl SqliteSite {
    pub(crate) fn new() -> Self {
        let folder = std::env::temp_dir().join(super::unique());
        std::fs::create_dir(&folder).expect("a folder");
        Self { folder }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    pub(crate) async fn connect(&self) -> SqliteConnection {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.file());
        options.connect().await.expect("a database")
    }
}

impl Drop for SqliteSite {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Site for SqliteSite {
    type Store = Sqlite;

    async fn open(
        &self,
        set: impl FnOnce(Opening<Sqlite>) -> Opening<Sqlite> + Send,
    ) -> Result<Sqlite, StoreError> {
        set(Sqlite::open(self.file())).await
    }

    async fn usage(store: &Sqlite) -> Usage {
        store.ledger_usage().await.expect("numbers")
    }

    async fn replies(&self) -> Vec<Vec<u8>> {
        let all = sqlx::query_scalar("SELECT reply FROM roundtrip_ledger WHERE reply IS NOT NULL");
        all.fetch_all(&mut self.connect().await).await.expect("rows")
    }

    async fn damage(&self, first: u8) {
        let change = "UPDATE roundtrip_ledger SET reply = CAST(? || substr(reply, 2) AS BLOB)";
        sqlx::query(change).bind(vec![first]).execute(&mut self.connect().await).await.expect("a change");
    }

    async fn expire(&self) {
        let change = sqlx::query("UPDATE roundtrip_ledger SET ends = 1");
        change.execute(&mut self.connect().await).await.expect("a change");
    }

    async fn outdate(&self) {
        let change = sqlx::query("INSERT INTO roundtrip_schema (version) VALUES (99)");
        change.execute(&mut self.connect().await).await.expect("a change");
    }

    async fn stored(&self) -> u64 {
        let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM roundtrip_ledger");
        count.fetch_one(&mut self.connect().await).await.expect("a number").cast_unsigned()
    }
}

impl TaskSite for SqliteSite {
    async fn execute(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(&mut self.connect().await).await.expect("a change");
    }

    async fn bytes(&self, statement: &'static str) -> Vec<Vec<u8>> {
        sqlx::query_scalar(statement).fetch_all(&mut self.connect().await).await.expect("rows")
    }
}

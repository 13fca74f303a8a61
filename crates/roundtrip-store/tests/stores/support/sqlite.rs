//! A file of a test's own.

use std::path::PathBuf;

use roundtrip_store::{Opening, Sqlite, StoreError, Usage};
use rusqlite::Connection;

use super::{OldTask, Site, TaskSite};

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

    pub(crate) fn connect(&self) -> Connection {
        let connection = Connection::open(self.file()).expect("a database");
        connection.busy_timeout(std::time::Duration::from_secs(5)).expect("a setting");
        connection
    }

    fn change(&self, statement: &str, parameters: impl rusqlite::Params) {
        self.connect().execute(statement, parameters).expect("a change");
    }

    fn column<T: rusqlite::types::FromSql>(&self, statement: &str) -> Vec<T> {
        let connection = self.connect();
        let mut statement = connection.prepare(statement).expect("a statement");
        let rows = statement.query_map((), |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("values")
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
        self.column("SELECT reply FROM roundtrip_ledger WHERE reply IS NOT NULL")
    }

    async fn damage(&self, first: u8) {
        let change = "UPDATE roundtrip_ledger SET reply = CAST(? || substr(reply, 2) AS BLOB)";
        self.change(change, [vec![first]]);
    }

    async fn disown(&self) {
        self.change("UPDATE roundtrip_ledger SET holder = zeroblob(16)", ());
    }

    async fn expire(&self) {
        self.change("UPDATE roundtrip_ledger SET ends = 1", ());
    }

    async fn outdate(&self) {
        self.change("INSERT INTO roundtrip_schema (version) VALUES (99)", ());
    }

    async fn stored(&self) -> u64 {
        self.column::<i64>("SELECT count(*) FROM roundtrip_ledger")[0].cast_unsigned()
    }
}

impl TaskSite for SqliteSite {
    async fn execute(&self, statements: &'static str) {
        self.connect().execute_batch(statements).expect("a change");
    }

    async fn bytes(&self, statement: &'static str) -> Vec<Vec<u8>> {
        self.column(statement)
    }

    /// A small call is a column of its task.
    fn task_bytes(&self) -> [&'static str; 2] {
        [
            "SELECT view FROM roundtrip_task UNION ALL SELECT work FROM roundtrip_task \
             UNION ALL SELECT result FROM roundtrip_task WHERE result IS NOT NULL \
             UNION ALL SELECT call FROM roundtrip_task WHERE call IS NOT NULL \
             UNION ALL SELECT bytes FROM roundtrip_task_chunks",
            "SELECT call FROM roundtrip_task WHERE call IS NOT NULL \
             UNION ALL SELECT bytes FROM roundtrip_task_chunks WHERE stream = 2",
        ]
    }

    async fn old_release(&self, tasks: &[OldTask]) {
        let connection = self.connect();
        for step in [
            "CREATE TABLE roundtrip_schema (version INTEGER NOT NULL)",
            include_str!("../../../migrations/sqlite/0001-ledger.sql"),
            include_str!("../../../migrations/sqlite/0002-tasks.sql"),
            "INSERT INTO roundtrip_schema VALUES (1), (2)",
        ] {
            connection.execute_batch(step).expect("tables");
        }
        let create = "INSERT INTO roundtrip_tasks (id, owner, account, version, fence, live, due, expires, view, work, \
                      changed, origin) VALUES (?,?,?,0,0,?,?,?,?,?,?,x'0102030405060708')";
        let next = "UPDATE roundtrip_tasks_changes SET last = last + 1 WHERE one = 1 RETURNING last";
        for OldTask { id, owner, account, live, due, expires, view, work } in tasks {
            let changed: i64 = connection.query_row(next, (), |row| row.get(0)).expect("a number");
            let row = rusqlite::params![id, owner, account, live, due, expires, view, work, changed];
            connection.execute(create, row).expect("a task");
        }
    }

    async fn is_refused(&self, statement: &'static str) -> Option<String> {
        self.connect().execute_batch(statement).err().map(|error| error.to_string())
    }
}

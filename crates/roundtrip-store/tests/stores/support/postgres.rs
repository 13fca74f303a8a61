//! A schema of a test's own. It goes with the server, which ends with the run.

use std::str::FromStr as _;

use roundtrip_store::{Opening, Postgres, StoreError, Usage};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};

use super::{OldTask, Site, TaskSite};

pub(crate) struct PostgresSite {
    pub(crate) url: String,
}

impl PostgresSite {
    pub(crate) async fn new() -> Option<Self> {
        let server = super::address("ROUNDTRIP_TEST_POSTGRES")?;
        let schema = super::unique();
        let site = Self { url: format!("{server}?options[search_path]={schema}") };
        let make = sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")));
        make.execute(&mut site.connect().await).await.expect("a schema");
        Some(site)
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnectOptions::from_str(&self.url).expect("an address").connect().await.expect("a database")
    }
}

impl Site for PostgresSite {
    type Store = Postgres;

    async fn open(
        &self,
        set: impl FnOnce(Opening<Postgres>) -> Opening<Postgres> + Send,
    ) -> Result<Postgres, StoreError> {
        set(Postgres::connect(&self.url)).await
    }

    async fn usage(store: &Postgres) -> Usage {
        store.ledger_usage().await.expect("numbers")
    }

    async fn replies(&self) -> Vec<Vec<u8>> {
        let all = sqlx::query_scalar("SELECT reply FROM roundtrip_ledger WHERE reply IS NOT NULL");
        all.fetch_all(&mut self.connect().await).await.expect("rows")
    }

    async fn damage(&self, first: u8) {
        let change = "UPDATE roundtrip_ledger SET reply = set_byte(reply, 0, $1)";
        let change = sqlx::query(change).bind(i32::from(first));
        change.execute(&mut self.connect().await).await.expect("a change");
    }

    async fn disown(&self) {
        let change = sqlx::query("UPDATE roundtrip_ledger SET holder = decode(repeat('00', 16), 'hex')");
        change.execute(&mut self.connect().await).await.expect("a change");
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

impl TaskSite for PostgresSite {
    async fn execute(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(&mut self.connect().await).await.expect("a change");
    }

    async fn bytes(&self, statement: &'static str) -> Vec<Vec<u8>> {
        sqlx::query_scalar(statement).fetch_all(&mut self.connect().await).await.expect("rows")
    }

    fn task_bytes(&self) -> [&'static str; 2] {
        [
            "SELECT view FROM roundtrip_task UNION ALL SELECT work FROM roundtrip_task \
             UNION ALL SELECT result FROM roundtrip_task WHERE result IS NOT NULL \
             UNION ALL SELECT bytes FROM roundtrip_task_chunks",
            "SELECT bytes FROM roundtrip_task_chunks WHERE stream = 2",
        ]
    }

    async fn old_release(&self, tasks: &[OldTask]) {
        let mut connection = self.connect().await;
        for step in [
            "CREATE TABLE roundtrip_schema (version bigint NOT NULL)",
            include_str!("../../../migrations/postgres/0001-ledger.sql"),
            include_str!("../../../migrations/postgres/0002-tasks.sql"),
            include_str!("../../../migrations/postgres/0003-rates.sql"),
            "INSERT INTO roundtrip_schema VALUES (1), (2), (3)",
        ] {
            sqlx::raw_sql(step).execute(&mut connection).await.expect("tables");
        }
        let create = "INSERT INTO roundtrip_tasks (id, owner, account, version, fence, live, due, expires, view, work) \
                      VALUES ($1, $2, $3, 0, 0, $4, $5, $6, $7, $8)";
        for task in tasks {
            let row =
                sqlx::query(create).bind(&task.id).bind(&task.owner).bind(&task.account).bind(task.live);
            let row = row.bind(task.due).bind(task.expires).bind(&task.view).bind(&task.work);
            row.execute(&mut connection).await.expect("a task");
        }
    }

    async fn is_refused(&self, statement: &'static str) -> Option<String> {
        let refused = sqlx::raw_sql(statement).execute(&mut self.connect().await).await;
        refused.err().map(|error| error.to_string())
    }
}

//! Bytes that databases write for tasks, and results that they do not read (K7).

use roundtrip::task::TaskStore;
use roundtrip::{Ask, Client, Server, Started, Tasks, Tool, ToolError, When};

use crate::support::tasks::sealed;

/// Steps of a task, and of one with twice as many.
type Steps = [u32; 2];

/// Most bytes that a database may write for a step: its two pieces, in pages.
const BYTES_PER_STEP: u64 = 20_000;

/// Runs a task of so many steps.
async fn run(store: impl TaskStore + 'static, steps: u32) {
    let job = move |ask: Ask| async move {
        for step in 0..steps {
            ask.remember(format!("step {step}"), async || format!("the result of step {step}")).await?;
        }
        Ok::<_, ToolError>("done")
    };
    let tool = Tool::new("job", job).task(When::Required);
    let client = Client::in_process(Server::new("jobs", "1").tool(tool).tasks(Tasks::new(store)));
    let client = client.expect("a server");
    let started = client.call_tool("job", ()).into_task().await.expect("a task");
    let Started::Task(task) = started else { panic!("a task, not {started:?}") };
    assert_eq!(client.task(task).wait().await.expect("a result").text(), "done");
}

fn assert_steps_cost_alike(steps: Steps, [half, whole]: [u64; 2]) {
    assert!(half > u64::from(steps[0]) * 100, "it is measured: {half} bytes");
    assert!(whole / u64::from(steps[1]) <= BYTES_PER_STEP, "{whole} bytes");
    assert!(whole * 10 <= half * 21, "{half} and {whole} bytes");
}

/// K7: what a step of a task makes SQLite write does not grow with the number of steps.
#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn steps_cost_alike_on_sqlite() {
    let site = crate::support::SqliteSite::new();
    let store = sealed(&site, &[1]).await;
    // As long as it reads, the log ahead grows by all that is written.
    let reader = site.connect();
    reader.execute_batch("BEGIN; SELECT count(*) FROM roundtrip_schema").expect("a snapshot");
    let log = || std::fs::metadata(site.folder.join("store.db-wal")).expect("a log").len();
    let (steps, mut written) = ([2_000, 4_000], [0; 2]);
    for (steps, written) in steps.into_iter().zip(&mut written) {
        let before = log();
        run(store.clone(), steps).await;
        *written = log() - before;
    }
    assert_steps_cost_alike(steps, written);
}

#[cfg(feature = "postgres")]
mod postgres {
    use sqlx::postgres::PgConnection;
    use sqlx::{AssertSqlSafe, Row as _};

    use super::*;
    use crate::support::{PostgresSite, TaskSite as _, instance, unique};

    async fn text(database: &mut PgConnection, statements: String) -> String {
        let rows = sqlx::raw_sql(AssertSqlSafe(statements)).fetch_all(database).await.expect("an answer");
        rows.last().map(|row| row.get::<String, _>(0)).unwrap_or_default()
    }

    /// Returns the bytes of the log ahead from a place on that are about this schema, and how many of them are images of pages: other
    /// tests write, too.
    async fn written_since(database: &mut PgConnection, place: &str) -> (u64, u64) {
        let written = format!(
            "WITH files AS (SELECT '%/' || pg_relation_filenode(c.oid) || ' %' AS place FROM pg_class c \
             LEFT JOIN pg_class t ON t.reltoastrelid = c.oid LEFT JOIN pg_index i ON i.indexrelid = c.oid \
             LEFT JOIN pg_class ti ON ti.reltoastrelid = i.indrelid \
             WHERE coalesce(ti.relnamespace, t.relnamespace, c.relnamespace) = current_schema()::regnamespace \
             AND pg_relation_filenode(c.oid) IS NOT NULL) \
             SELECT coalesce(sum(record_length), 0) || ' ' || coalesce(sum(fpi_length), 0) \
             FROM pg_get_wal_records_info('{place}', pg_current_wal_flush_lsn()) AS record \
             WHERE EXISTS (SELECT FROM files WHERE record.block_ref LIKE files.place)"
        );
        let written = text(database, written).await;
        let (bytes, images) = written.split_once(' ').expect("two numbers");
        (bytes.parse().expect("a number"), images.parse().expect("a number"))
    }

    /// K7: what a step of a task makes PostgreSQL write does not grow with the number of steps.
    #[tokio::test(flavor = "multi_thread")]
    async fn steps_cost_alike_on_postgres() {
        let (steps, mut written) = ([2_000, 4_000], [0; 2]);
        for (steps, written) in steps.into_iter().zip(&mut written) {
            // Tables of its own: how pages of an index are split depends on what is in them.
            let Some(site) = PostgresSite::new().await else { return };
            let (store, mut database) = (sealed(&site, &[1]).await, site.connect().await);
            // Of PostgreSQL's contrib. In the database of all tests, whose schemas come and go.
            text(&mut database, "CREATE EXTENSION IF NOT EXISTS pg_walinspect SCHEMA pg_catalog".to_owned())
                .await;
            let slot = unique();
            text(&mut database, format!("SELECT pg_create_physical_replication_slot('{slot}', true)::text"))
                .await;
            site.execute("ALTER TABLE roundtrip_task_chunks SET (autovacuum_enabled = false)").await;
            let place = "CHECKPOINT; SELECT pg_current_wal_insert_lsn()::text".to_owned();
            let place = text(&mut database, place).await;
            run(store.clone(), steps).await;
            let (bytes, images) = written_since(&mut database, &place).await;
            assert!(bytes / u64::from(steps) <= BYTES_PER_STEP, "{bytes} bytes");
            // A page is written whole when it first changes after a checkpoint: that is not for each step.
            *written = bytes - images;
            text(&mut database, format!("SELECT pg_drop_replication_slot('{slot}')::text")).await;
        }
        assert_steps_cost_alike(steps, written);
    }

    /// K7: PostgreSQL reads no result that is not asked for.
    #[tokio::test]
    async fn no_result_is_read_that_is_not_asked_for() {
        let Some(site) = PostgresSite::new().await else { return };
        drop(instance(&site).await);
        let mut database = site.connect().await;
        let fill = "ALTER TABLE roundtrip_task ALTER result SET STORAGE EXTERNAL; \
                    INSERT INTO roundtrip_task (id, service, owner, account, kind, version, fence, held, live, expires, view, work, \
                    result) SELECT md5(n::text), decode(md5('s'), 'hex'), decode(md5('o'), 'hex'), decode(md5('a'), 'hex'), \
                    decode(md5('k'), 'hex'), 1, 1, false, false, 1, 'view', 'work', decode(repeat('ab', 1 << 20), 'hex') \
                    FROM generate_series(1, 50) n";
        text(&mut database, fill.to_owned()).await;
        let (service, owner) = ("decode(md5('s'), 'hex')", "decode(md5('o'), 'hex')");
        for (name, arguments, reads_results) in [
            ("task-list", format!("{service}, {owner}, '', 50"), false),
            ("task-expired", format!("{service}, 50"), false),
            ("task-view", format!("md5('1'), {service}, {owner}, false"), false),
            ("task-view", format!("md5('1'), {service}, {owner}, true"), true),
        ] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql");
            let statement = std::fs::read_to_string(format!("{folder}/{name}.sql")).expect("a statement");
            let before = result_pages(&mut database).await;
            text(&mut database, format!("PREPARE it AS {statement}")).await;
            let execute = sqlx::raw_sql(AssertSqlSafe(format!("EXECUTE it({arguments})")));
            assert!(!execute.fetch_all(&mut database).await.expect("rows").is_empty());
            text(&mut database, "DEALLOCATE it".to_owned()).await;
            let pages = result_pages(&mut database).await - before;
            assert_eq!(pages > 100, reads_results, "{name}({arguments}): {pages} pages");
            assert!(reads_results || pages < 10, "{name}({arguments}): {pages} pages");
        }
    }

    /// Pages of large values that this connection has read so far.
    async fn result_pages(database: &mut PgConnection) -> i64 {
        text(database, "SELECT pg_stat_force_next_flush()::text".to_owned()).await;
        let pages = "SELECT (coalesce(toast_blks_hit, 0) + coalesce(toast_blks_read, 0))::text \
                     FROM pg_statio_user_tables WHERE relid = 'roundtrip_task'::regclass";
        text(database, pages.to_owned()).await.parse().expect("a number")
    }
}

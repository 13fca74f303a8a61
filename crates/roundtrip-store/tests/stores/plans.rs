//! Plans of PostgreSQL for statements of tasks, beside thousands of others (K7).

use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::support::{PostgresSite, instance};

/// Arguments of every statement of tasks, by the names of their files. Digests are `$d`, an identifier is `$i`.
const ARGUMENTS: &[(&str, &str)] = &[
    ("task-adopt", "$i, $d, 0, $d, $d, '', '', NULL, '{0}', '{x}'"),
    ("task-append", "$i, $d, $d, 1, '{1}', '{x}'"),
    ("task-create", "$i, $d, $d, $d, $d, NULL, NULL, '', '', '', NULL, 9"),
    ("task-expired", "$d, 100"),
    ("task-give-back", "$i, $d, $d, 1"),
    ("task-list", "$d, $d, '', 10"),
    ("task-load", "$i, $d, $d"),
    ("task-orphan", "$i, $d"),
    ("task-orphans", "'', 10"),
    ("task-pairs", "$d, '{}', '', '', 256, 64"),
    ("task-parts", "$i, $d, $d, 0, 9"),
    ("task-read", "$i, $d, $d"),
    ("task-remove", "$d, ARRAY[$i], '{0}'"),
    ("task-remove-orphans", "60000, 100"),
    ("task-renew", "ARRAY[$i], '{1}', 1000"),
    ("task-reseal-piece", "'', $i, '', 0, 0"),
    ("task-reseal-result", "'', $i, ''"),
    ("task-reseal-view", "'', $i, ''"),
    ("task-reseal-work", "'', $i, ''"),
    ("task-take", "$d, ARRAY[$d], ARRAY[$d], '{9}', '{}', 1000"),
    ("task-view", "$i, $d, $d, true"),
    ("task-write", "$i, $d, $d, 0, true, true, NULL, NULL, '', '', NULL, '{0}', '{1}', '{x}', true"),
];

/// 20,000 tasks of three services, 7 kinds and 500 accounts, with two pieces each.
const FILL: &str = "INSERT INTO roundtrip_task (id, service, owner, account, kind, version, fence, held, live, due, expires, view, \
     work) SELECT md5(n::text), decode(md5((n % 3)::text), 'hex'), decode(md5((n % 1000)::text), 'hex'), \
     decode(md5((n % 500)::text), 'hex'), decode(md5((n % 7)::text), 'hex'), 0, 0, n % 20 = 0, true, n::bigint * 1000, \
     n::bigint * 1000, '', '' FROM generate_series(1, 20000) n; \
     INSERT INTO roundtrip_task_chunks SELECT md5(n::text), stream, 0, '' \
     FROM generate_series(1, 20000) n, (VALUES (0), (2)) AS s (stream); \
     ANALYZE roundtrip_task; ANALYZE roundtrip_task_chunks";

async fn run(database: &mut PgConnection, statements: String) -> Vec<sqlx::postgres::PgRow> {
    sqlx::raw_sql(AssertSqlSafe(statements)).fetch_all(database).await.expect("an answer")
}

/// Returns the statement in a file.
fn statement(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql");
    std::fs::read_to_string(format!("{folder}/{name}.sql")).expect("a statement")
}

/// K7: PostgreSQL finds what a statement needs by an index, in the plan that it makes for any arguments.
#[tokio::test]
async fn postgres_finds_tasks_by_an_index() {
    let Some(site) = PostgresSite::new().await else { return };
    drop(instance(&site).await);
    let mut database = site.connect().await;
    run(&mut database, format!("{FILL}; SET plan_cache_mode = force_generic_plan")).await;
    for (name, arguments) in ARGUMENTS {
        let prepared = name.replace('-', "_");
        run(&mut database, format!("PREPARE {prepared} AS {}", statement(name))).await;
        let arguments = arguments.replace("$d", "decode(md5('1'), 'hex')").replace("$i", "md5('1')");
        let plan = run(&mut database, format!("EXPLAIN EXECUTE {prepared}({arguments})")).await;
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("Index"), "{name}: {plan}");
        assert!(!plan.contains("Seq Scan"), "{name}: {plan}");
    }
}

/// K7: every statement of tasks is among those whose plans are looked at.
#[test]
fn every_statement_of_tasks_is_explained() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").file_name());
    let names = files.map(|file| file.to_string_lossy().trim_end_matches(".sql").to_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("task-")).collect();
    names.sort();
    assert_eq!(names, ARGUMENTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

/// Returns the number of rows that the scans of a plan have looked at.
fn rows_read(plan: &Value) -> f64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or_default();
    let is_scan = plan["Relation Name"].is_string() && plan["Node Type"] != "ModifyTable";
    let read = (number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops");
    let inner = plan["Plans"].as_array().into_iter().flatten().map(rows_read).sum::<f64>();
    inner + if is_scan { read } else { 0.0 }
}

/// K7: tasks that no worker of a process can run cost it nothing, however many there are.
#[tokio::test]
async fn tasks_of_others_cost_nothing_on_postgres() {
    let Some(site) = PostgresSite::new().await else { return };
    drop(instance(&site).await);
    let mut database = site.connect().await;
    // All of one service: 5,000 of a kind that nobody has, 5,000 of another that are not due, both of 100 accounts, and of the good
    // kind and account a single one is due, 10,000 are not, and 10,000 are held.
    let fill = "INSERT INTO roundtrip_task (id, service, owner, account, kind, version, fence, held, live, due, view, work) \
                SELECT md5(n::text), decode(md5('s'), 'hex'), decode(md5('o'), 'hex'), \
                decode(md5(CASE WHEN n % 3 = 0 THEN (n % 200)::text ELSE 'a' END), 'hex'), \
                decode(md5(CASE WHEN n % 6 = 0 THEN 'foreign' WHEN n % 6 = 3 THEN 'later' ELSE 'good' END), 'hex'), \
                0, 0, n % 3 = 2, true, CASE WHEN n % 6 = 0 OR n = 1 THEN n ELSE 9000000000000 END, '', '' FROM generate_series(1, 30000) n; \
                ANALYZE roundtrip_task";
    run(&mut database, fill.to_owned()).await;
    let (service, good, account) =
        ("decode(md5('s'), 'hex')", "decode(md5('good'), 'hex')", "decode(md5('a'), 'hex')");
    for (name, arguments) in [
        ("task-pairs", format!("{service}, ARRAY[{good}], '', '', 256, 64")),
        ("task-take", format!("{service}, ARRAY[{good}], ARRAY[{account}], '{{9}}', '{{}}', 1000")),
    ] {
        let prepared = name.replace('-', "_");
        run(&mut database, format!("PREPARE {prepared} AS {}", statement(name))).await;
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {prepared}({arguments})");
        let plan = run(&mut database, explain).await;
        let plan: Value = serde_json::from_str(plan[0].get_unchecked(0)).expect("a plan");
        let (read, blocks) = (rows_read(&plan[0]["Plan"]), &plan[0]["Plan"]["Shared Hit Blocks"]);
        assert!(read < 20.0, "{name}: {read} rows in {plan:#}");
        assert!(blocks.as_i64().is_some_and(|blocks| blocks < 100), "{name}: {blocks} blocks in {plan:#}");
    }
}

-- $1 id, $2 service, $3 owner, $4 account, $5 kind, $6 lease in milliseconds, if it has one, $7 expires, $8 view, $9 work, $10 call,
-- $11 journal, $12 most. One row if the task is there now, none if its account has too many. The row of the account is locked to the
-- end: of two that are added at once, the second counts the first.
WITH known AS (
    SELECT FROM roundtrip_task WHERE id = $1
), counted AS (
    INSERT INTO roundtrip_task_live AS c (service, account, live)
    SELECT $2, $4, 1 WHERE $12::bigint > 0 AND NOT EXISTS (SELECT FROM known)
    ON CONFLICT (service, account) DO UPDATE SET live = c.live + 1 WHERE c.live < $12
    RETURNING 1
), created AS (
    INSERT INTO roundtrip_task
        (id, service, owner, account, kind, version, fence, held, live, due, expires, view, work)
    SELECT $1, $2, $3, $4, $5, 0, ($6::bigint IS NOT NULL)::int, $6 IS NOT NULL, true,
        (extract(epoch FROM now()) * 1000)::bigint + coalesce($6, 0), $7, $8, $9
    FROM counted
    RETURNING id
), added AS (
    INSERT INTO roundtrip_task_chunks (task, stream, number, bytes)
    SELECT created.id, piece.stream, 0, piece.bytes
    FROM created, (VALUES (2, $10::bytea), (0, $11::bytea)) AS piece (stream, bytes)
    WHERE piece.bytes IS NOT NULL
)
SELECT 1 FROM created
UNION ALL
SELECT 1 FROM known

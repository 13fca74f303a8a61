-- $1 now, $2 until, $3 most. Rows that another instance is taking are left to it. The rows are an array, not joined: a plan for
-- any number of them would read the whole table.
WITH next AS MATERIALIZED (
    SELECT id, due FROM roundtrip_tasks WHERE due <= $1 ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE roundtrip_tasks SET due = $2, version = version + 1, fence = fence + 1
    WHERE id = ANY (ARRAY(SELECT next.id FROM next))
    RETURNING id, owner, account, version, fence, live, due, expires, view, work
)
SELECT t.id, owner, account, version, fence, live, t.due, expires, view, work
FROM taken t JOIN next ON next.id = t.id ORDER BY next.due, t.id

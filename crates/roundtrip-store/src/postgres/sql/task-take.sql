-- $1 now, $2 until, $3 most. Rows that another instance is taking are left to it.
WITH next AS (
    SELECT id, due FROM roundtrip_tasks WHERE due <= $1 ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE roundtrip_tasks t SET due = $2, version = t.version + 1, fence = t.fence + 1
    FROM next WHERE t.id = next.id
    RETURNING t.id, owner, account, version, fence, live, t.due, expires, view, work, next.due AS was
)
SELECT id, owner, account, version, fence, live, due, expires, view, work FROM taken ORDER BY was, id

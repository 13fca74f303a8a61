-- $1 id, $2 owner, $3 account, $4 version, $5 fence, $6 live, $7 due, $8 expires, $9 view, $10 work, $11 most
-- One row if the task is there now, none if its account has too many. The row of the account is locked to the end: of two that
-- are added at once, the second counts the first.
WITH known AS (
    SELECT FROM roundtrip_tasks WHERE id = $1
), counted AS (
    INSERT INTO roundtrip_tasks_live AS c (account, live)
    SELECT $3, $6::boolean::int WHERE $11 > 0 AND NOT EXISTS (SELECT FROM known)
    ON CONFLICT (account) DO UPDATE SET live = c.live + excluded.live WHERE c.live < $11
    RETURNING 1
), created AS (
    INSERT INTO roundtrip_tasks (id, owner, account, version, fence, live, due, expires, view, work)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM counted
    RETURNING 1
)
SELECT 1 FROM created
UNION ALL
SELECT 1 FROM known

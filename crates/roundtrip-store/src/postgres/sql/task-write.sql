-- $1 id, $2 version, $3 fence, $4 live, $5 due, $6 expires, $7 view, $8 work. One row if its version was this.
WITH old AS (
    SELECT account, live FROM roundtrip_tasks WHERE id = $1 AND version = $2 FOR UPDATE
), written AS (
    UPDATE roundtrip_tasks t
    SET version = t.version + 1, fence = $3, live = $4, due = $5, expires = $6, view = $7, work = $8
    FROM old WHERE t.id = $1 AND t.version = $2
    RETURNING old.account, $4::boolean::int - old.live::int AS change
), counted AS (
    INSERT INTO roundtrip_tasks_live AS c (account, live)
    SELECT account, change FROM written WHERE change <> 0
    ON CONFLICT (account) DO UPDATE SET live = c.live + excluded.live
)
SELECT 1 FROM written

-- $1 id, $2 version. The count of an account goes with a task that had ended, if it counts none.
WITH removed AS (
    DELETE FROM roundtrip_tasks WHERE id = $1 AND version = $2 RETURNING account, live
), counted AS (
    UPDATE roundtrip_tasks_live c SET live = c.live - 1
    FROM removed WHERE c.account = removed.account AND removed.live
)
DELETE FROM roundtrip_tasks_live c
USING removed WHERE c.account = removed.account AND NOT removed.live AND c.live <= 0

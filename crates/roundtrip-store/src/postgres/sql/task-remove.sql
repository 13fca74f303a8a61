-- $1 service, $2 ids, $3 versions. The count of an account goes with a task that had ended, if it counts none. Pieces go with their
-- tasks.
WITH removed AS (
    DELETE FROM roundtrip_task
    WHERE id = ANY ($2::text[]) AND service = $1
        AND (id, version) IN (SELECT * FROM unnest($2::text[], $3::bigint[]))
    RETURNING account, live
), counted AS (
    INSERT INTO roundtrip_task_live AS c (service, account, live)
    SELECT $1, account, -count(*) FROM removed WHERE live GROUP BY account
    -- Every statement locks counts in this order, so that none waits in a circle.
    ORDER BY account
    ON CONFLICT (service, account) DO UPDATE SET live = c.live + excluded.live
)
DELETE FROM roundtrip_task_live c
WHERE c.service = $1 AND c.live <= 0
    AND c.account = ANY (ARRAY(SELECT removed.account FROM removed WHERE NOT removed.live))

-- $1 grace of those that have not ended, in milliseconds, $2 most. One row with the number of those that were removed.
WITH clock AS (
    SELECT (extract(epoch FROM now()) * 1000)::bigint AS now
), removed AS (
    DELETE FROM roundtrip_task
    WHERE service IS NULL AND id = ANY (ARRAY(
        SELECT t.id FROM roundtrip_task t
        WHERE t.service IS NULL AND t.expires <= (SELECT now FROM clock)
            AND (NOT t.live OR t.expires <= (SELECT now FROM clock) - $1)
        ORDER BY t.expires LIMIT $2
    ))
    RETURNING 1
)
SELECT count(*) FROM removed

-- $1 most records. One row: the number removed, and their owners.
WITH over AS (
    SELECT id FROM roundtrip_ledger WHERE ends <= (extract(epoch FROM now()) * 1000)::bigint
    ORDER BY ends LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    -- An array, because a join with so many rows may read the whole table.
    DELETE FROM roundtrip_ledger r WHERE r.id = ANY (ARRAY(SELECT id FROM over))
    RETURNING r.owner, get_byte(r.id, 0) % 32 AS shard, r.bytes
), counted AS (
    INSERT INTO roundtrip_ledger_counts AS c (owner, shard, records, bytes)
    SELECT whose.owner, gone.shard, -count(*), -sum(gone.bytes)::bigint
    FROM gone, LATERAL (VALUES (gone.owner), (''::bytea)) AS whose (owner)
    GROUP BY whose.owner, gone.shard
    -- Callers first, all together last: every statement locks rows in this order, so that none waits in a circle.
    ORDER BY whose.owner = '', whose.owner, gone.shard
    ON CONFLICT (owner, shard) DO UPDATE
        SET records = c.records + excluded.records, bytes = c.bytes + excluded.bytes
)
SELECT count(*) AS removed, coalesce(array_agg(DISTINCT owner), '{}') AS owners FROM gone

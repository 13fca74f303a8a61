-- $1 id, $2 holder. One row, with the owner, if the claim was still there.
WITH gone AS (
    DELETE FROM roundtrip_ledger WHERE id = $1 AND holder = $2 AND reply IS NULL RETURNING owner, bytes
), counted AS (
    INSERT INTO roundtrip_ledger_counts AS c (owner, shard, records, bytes)
    SELECT whose.owner, get_byte($1, 0) % 32, -1, -gone.bytes
    FROM gone, LATERAL (VALUES (gone.owner), (''::bytea)) AS whose (owner)
    ON CONFLICT (owner, shard) DO UPDATE SET records = c.records - 1, bytes = c.bytes + excluded.bytes
)
SELECT 1::bigint AS removed, ARRAY[owner] AS owners FROM gone

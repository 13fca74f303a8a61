-- $1 id, $2 holder, $3 reply, $4 its length, $5 its end. One row if the claim was still there.
WITH claimed AS (
    SELECT owner, bytes FROM roundtrip_ledger WHERE id = $1 AND holder = $2 FOR UPDATE
), recorded AS (
    UPDATE roundtrip_ledger r SET reply = $3, bytes = $4, ends = $5 FROM claimed
    WHERE r.id = $1 AND r.holder = $2
    RETURNING 1
), counted AS (
    INSERT INTO roundtrip_ledger_counts AS c (owner, shard, records, bytes)
    SELECT whose.owner, get_byte($1, 0) % 32, 0, $4 - claimed.bytes
    FROM claimed, LATERAL (VALUES (claimed.owner), (''::bytea)) AS whose (owner)
    ON CONFLICT (owner, shard) DO UPDATE SET bytes = c.bytes + excluded.bytes
)
SELECT 1 FROM recorded

-- $1 id, $2 service, $3 owner, $4 fence, $5 numbers, $6 bytes. One row if a worker still has the task under this fence. Its row is
-- locked until the pieces are there: whoever takes the task meanwhile does so before, and then the fence is another, or after, and
-- reads them.
WITH own AS MATERIALIZED (
    SELECT id FROM roundtrip_task
    WHERE id = $1 AND service = $2 AND owner = $3 AND fence = $4 AND held AND live
    FOR SHARE
), added AS (
    INSERT INTO roundtrip_task_chunks (task, stream, number, bytes)
    SELECT own.id, 0, piece.number, piece.bytes
    FROM own, unnest($5::bigint[], $6::bytea[]) AS piece (number, bytes)
    ON CONFLICT DO NOTHING
)
SELECT 1 FROM own

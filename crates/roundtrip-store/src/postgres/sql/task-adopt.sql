-- $1 id, $2 owner, $3 version, $4 service, $5 kind, $6 view, $7 work, $8 result, $9 streams and $10 bytes of pieces. One row if it was an
-- orphan of this version.
WITH adopted AS (
    UPDATE roundtrip_task
    SET service = $4, kind = $5, version = version + 1, view = $6, work = $7, result = $8
    WHERE id = $1 AND owner = $2 AND service IS NULL AND version = $3
    RETURNING id, account, live
), counted AS (
    INSERT INTO roundtrip_task_live AS c (service, account, live)
    SELECT $4, account, 1 FROM adopted WHERE live
    ON CONFLICT (service, account) DO UPDATE SET live = c.live + 1
), added AS (
    INSERT INTO roundtrip_task_chunks (task, stream, number, bytes)
    SELECT adopted.id, piece.stream, 0, piece.bytes
    FROM adopted, unnest($9::smallint[], $10::bytea[]) AS piece (stream, bytes)
    ON CONFLICT DO NOTHING
)
SELECT 1 FROM adopted

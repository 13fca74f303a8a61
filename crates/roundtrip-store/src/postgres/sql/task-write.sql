-- $1 id, $2 service, $3 owner, $4 version, $5 live, $6 whether the time and the worker stay as they are, $7 milliseconds until it is due
-- if they do not, $8 expires, $9 view, $10 work, $11 result, $12 streams, $13 numbers and $14 bytes of new pieces, $15 whether
-- these take the place of the journal's. One row if its version was this. A piece that its worker appends in the same moment may stay behind one that ends: it goes with the task.
WITH old AS (
    SELECT id, account, live FROM roundtrip_task
    WHERE id = $1 AND service = $2 AND owner = $3 AND version = $4
    FOR UPDATE
), written AS (
    UPDATE roundtrip_task t
    SET version = t.version + 1,
        live = $5,
        held = $5 AND $6 AND t.held,
        due = CASE WHEN $5 AND $6 THEN t.due
                   WHEN $5 THEN (extract(epoch FROM now()) * 1000)::bigint + $7::bigint END,
        expires = $8, view = $9, work = $10, result = coalesce($11, t.result)
    FROM old WHERE t.id = $1 AND t.version = $4
    RETURNING t.id, old.account, $5::boolean::int - old.live::int AS change
), counted AS (
    INSERT INTO roundtrip_task_live AS c (service, account, live)
    SELECT $2, account, change FROM written WHERE change <> 0
    ON CONFLICT (service, account) DO UPDATE SET live = c.live + excluded.live
), forgotten AS (
    DELETE FROM roundtrip_task_chunks c
    WHERE c.task = (SELECT id FROM written) AND (
        c.stream IN (0, 2) AND NOT $5
        OR c.stream = 0 AND $15
            AND NOT EXISTS (SELECT FROM unnest($12::smallint[], $13::bigint[]) AS piece (stream, number)
                            WHERE piece.stream = 0 AND piece.number = c.number)
    )
), added AS (
    INSERT INTO roundtrip_task_chunks (task, stream, number, bytes)
    SELECT written.id, piece.stream, piece.number, piece.bytes
    FROM written, unnest($12::smallint[], $13::bigint[], $14::bytea[]) AS piece (stream, number, bytes)
    ON CONFLICT (task, stream, number) DO UPDATE SET bytes = excluded.bytes
    WHERE $15 AND roundtrip_task_chunks.stream = 0
)
SELECT 1 FROM written

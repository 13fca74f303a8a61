-- $1 id, $2 service, $3 owner. The call (stream 2) and the journal (stream 0) of a task that has not ended, and beside the call what
-- else its worker needs.
SELECT c.stream, c.number, c.bytes, t.version, t.fence, CASE WHEN c.stream = 2 THEN t.work END
FROM roundtrip_task t JOIN roundtrip_task_chunks c ON c.task = t.id AND c.stream IN (0, 2)
WHERE t.id = $1 AND t.service = $2 AND t.owner = $3 AND t.live
ORDER BY c.stream, c.number

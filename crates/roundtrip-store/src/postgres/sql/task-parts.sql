-- $1 id, $2 service, $3 owner, $4 number of a part, $5 most. The piece that holds the part, and those behind it.
SELECT c.number, c.bytes
FROM roundtrip_task t JOIN roundtrip_task_chunks c ON c.task = t.id AND c.stream = 1
WHERE t.id = $1 AND t.service = $2 AND t.owner = $3 AND c.number >= coalesce((
    SELECT max(p.number) FROM roundtrip_task_chunks p WHERE p.task = $1 AND p.stream = 1 AND p.number <= $4
), 0)
ORDER BY c.number LIMIT $5

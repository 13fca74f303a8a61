-- $1 ids, $2 fences, $3 lease in milliseconds. The ids are an array: a join with so many may read the whole table.
UPDATE roundtrip_task
SET due = greatest(due, (extract(epoch FROM now()) * 1000)::bigint + $3)
WHERE id = ANY ($1::text[]) AND (id, fence) IN (SELECT * FROM unnest($1::text[], $2::bigint[])) AND held AND live
RETURNING id, version

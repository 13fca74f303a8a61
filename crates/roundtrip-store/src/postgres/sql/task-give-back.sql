-- $1 id, $2 service, $3 owner, $4 fence.
UPDATE roundtrip_task SET held = false, due = (extract(epoch FROM now()) * 1000)::bigint
WHERE id = $1 AND service = $2 AND owner = $3 AND fence = $4 AND held AND live
RETURNING version

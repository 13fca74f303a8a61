-- $1 id, $2 service, $3 owner.
SELECT version, fence, held AND coalesce(due > (extract(epoch FROM now()) * 1000)::bigint, false), view, work
FROM roundtrip_task WHERE id = $1 AND service = $2 AND owner = $3

-- $1 service, $2 most.
SELECT id, owner, version, live FROM roundtrip_task
WHERE service = $1 AND expires <= (extract(epoch FROM now()) * 1000)::bigint
ORDER BY expires LIMIT $2

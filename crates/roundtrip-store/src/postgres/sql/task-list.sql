-- $1 service, $2 owner, $3 id behind which to begin, $4 most.
SELECT id, view FROM roundtrip_task WHERE service = $1 AND owner = $2 AND id > $3 ORDER BY id LIMIT $4

-- $1 id behind which to begin, $2 most.
SELECT id, owner, version FROM roundtrip_task WHERE service IS NULL AND id > $1 ORDER BY id LIMIT $2

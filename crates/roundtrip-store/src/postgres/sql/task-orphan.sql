-- $1 id, $2 owner.
SELECT id, owner, version, view, work FROM roundtrip_task WHERE service IS NULL AND id = $1 AND owner = $2

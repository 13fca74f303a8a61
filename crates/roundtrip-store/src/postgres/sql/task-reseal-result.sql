-- $1 new bytes, $2 id, $3 old bytes.
UPDATE roundtrip_task SET result = $1 WHERE id = $2 AND result = $3

-- $1 id, $2 service, $3 owner, $4 whether the result is asked for: it is read only then.
SELECT view, kind, live AND coalesce(due <= (extract(epoch FROM now()) * 1000)::bigint, false),
    CASE WHEN $4 THEN result END
FROM roundtrip_task WHERE id = $1 AND service = $2 AND owner = $3

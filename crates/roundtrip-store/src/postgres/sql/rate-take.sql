-- $1 id, $2 the time that a request takes, $3 the time that a full bucket is worth; in microseconds. Times since 1970 are exact to a
-- quarter of a microsecond. The time to wait is of the bucket as it was when the statement began.
WITH clock AS (
    SELECT extract(epoch FROM clock_timestamp())::double precision * 1000000 AS now
), taken AS (
    INSERT INTO roundtrip_rates AS bucket (id, full_at)
    SELECT $1, now + $2 FROM clock
    ON CONFLICT (id) DO UPDATE SET full_at = greatest(bucket.full_at, excluded.full_at - $2) + $2
        WHERE greatest(bucket.full_at, excluded.full_at - $2) + $2 - (excluded.full_at - $2) <= $3::double precision + 1
    RETURNING 1
)
SELECT EXISTS (SELECT FROM taken),
       coalesce((SELECT full_at FROM roundtrip_rates WHERE id = $1) + $2 - $3 - clock.now, 0)
FROM clock

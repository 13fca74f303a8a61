-- Buckets of rate limits: the moment at which each is full again, in microseconds since 1970. Not logged, as they need not outlive a
-- crash; without a second index, so that a change stays on its page.
CREATE UNLOGGED TABLE roundtrip_rates (
    id      bytea            NOT NULL PRIMARY KEY,
    full_at double precision NOT NULL
) WITH (fillfactor = 50);

-- $1 service, $2 kinds, $3 and $4 the kind and the account behind which to begin, $5 most steps, $6 most pairs that are due. Kinds and
-- accounts of tasks that are free (held is false) and of tasks that a worker has, each with whether the first of its tasks is due.
-- Each step finds the next pair by the index, however many tasks a pair has. Of a kind that is not among $2, the first pair is enough,
-- due or not: the next step is to another kind.
WITH RECURSIVE pair AS (
    SELECT side.held, $3::bytea AS kind, $4::bytea AS account, false AS is_due, 0 AS steps, 0 AS found
    FROM (VALUES (false), (true)) AS side (held)
    UNION ALL
    SELECT pair.held, next.kind, next.account, next.is_due, pair.steps + 1, pair.found + next.is_due::int
    FROM pair, LATERAL (
        SELECT t.kind, t.account, t.due <= (extract(epoch FROM now()) * 1000)::bigint AS is_due
        FROM roundtrip_task t
        WHERE t.service = $1 AND t.held = pair.held AND t.due IS NOT NULL
            AND (t.kind, t.account) > (pair.kind, CASE
                WHEN pair.kind <> ALL ($2::bytea[]) THEN '\xffffffffffffffffffffffffffffffff'::bytea
                ELSE pair.account END)
        ORDER BY t.kind, t.account, t.due LIMIT 1
    ) AS next
    WHERE pair.steps < $5 AND pair.found < $6
)
SELECT held, kind, account, is_due FROM pair WHERE steps > 0 ORDER BY kind, account

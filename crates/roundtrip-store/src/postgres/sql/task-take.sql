-- $1 service, $2 kinds, $3 accounts and $4 most of each, $5 ids to leave alone, $6 lease in milliseconds. Rows that another instance is
-- taking are left to it. The rows are an array, not joined: a plan for any number of them would read the whole table.
WITH wanted AS (
    SELECT kind, account, most, place
    FROM unnest($2::bytea[], $3::bytea[], $4::bigint[]) WITH ORDINALITY AS w (kind, account, most, place)
), due AS MATERIALIZED (
    SELECT t.id, t.due, side.held, wanted.most, wanted.place
    FROM wanted, (VALUES (false), (true)) AS side (held), LATERAL (
        SELECT id, due FROM roundtrip_task
        WHERE service = $1 AND held = side.held AND kind = wanted.kind AND account = wanted.account
            AND due <= (extract(epoch FROM now()) * 1000)::bigint AND id <> ALL ($5::text[])
        ORDER BY due LIMIT wanted.most FOR UPDATE SKIP LOCKED
    ) AS t
), next AS MATERIALIZED (
    SELECT id, due, held, place FROM (
        SELECT *, row_number() OVER (PARTITION BY place ORDER BY due, id) AS number FROM due
    ) AS ordered WHERE number <= most
), taken AS (
    UPDATE roundtrip_task t
    SET held = true, due = (extract(epoch FROM now()) * 1000)::bigint + $6, version = version + 1, fence = fence + 1
    WHERE id = ANY (ARRAY(SELECT next.id FROM next))
    RETURNING id, owner, account, kind, fence, octet_length(work) AS size
)
SELECT t.id, t.owner, t.account, t.kind, t.fence, t.size + coalesce((
    SELECT sum(octet_length(c.bytes)) FROM roundtrip_task_chunks c WHERE c.task = t.id AND c.stream IN (0, 2)
), 0), next.held
FROM taken t JOIN next ON next.id = t.id ORDER BY next.place, next.due, t.id

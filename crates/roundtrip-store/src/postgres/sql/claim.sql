-- $1 id, $2 call, $3 owner, $4 holder, $5 lease, $6 most records, $7 most bytes
-- One row: 0 claimed, 1 another call, 2 running, 3 done, 4 full. No row: another claim came in between, look again.
WITH clock AS (
    SELECT (extract(epoch FROM now()) * 1000)::bigint AS now
), found AS (
    SELECT r.call, r.reply FROM roundtrip_ledger r, clock
    WHERE r.id = $1 AND r.ends > clock.now AND NOT (r.holder = $4 AND r.reply IS NULL)
), held AS (
    SELECT coalesce(sum(records) FILTER (WHERE owner = $3), 0)::bigint AS own_records,
           coalesce(sum(bytes) FILTER (WHERE owner = $3), 0)::bigint AS own_bytes,
           coalesce(sum(records) FILTER (WHERE owner = ''), 0)::bigint AS all_records,
           coalesce(sum(bytes) FILTER (WHERE owner = ''), 0)::bigint AS all_bytes
    FROM roundtrip_ledger_counts WHERE owner IN ($3, '')
), room AS (
    -- One caller has at most half of what the others leave.
    SELECT own_records < (greatest($6 - (all_records - own_records), 0) + 1) / 2
       AND own_bytes < (greatest($7 - (all_bytes - own_bytes), 0) + 1) / 2 AS is_there
    FROM held
), claimed AS (
    INSERT INTO roundtrip_ledger AS r (id, call, owner, holder, ends)
    SELECT $1, $2, $3, $4, clock.now + $5 FROM clock, room
    WHERE room.is_there AND NOT EXISTS (SELECT FROM found)
    -- A record that is over is taken with its place and its bytes, which are counted already.
    ON CONFLICT (id) DO UPDATE SET call = excluded.call, holder = excluded.holder, ends = excluded.ends, reply = NULL
    WHERE r.ends <= (SELECT now FROM clock) OR (r.holder = $4 AND r.reply IS NULL)
    RETURNING r.xmax = 0 AS is_new
), counted AS (
    INSERT INTO roundtrip_ledger_counts AS c (owner, shard, records, bytes)
    SELECT whose.owner, get_byte($1, 0) % 32, 1, 0 FROM claimed, (VALUES ($3::bytea), (''::bytea)) AS whose (owner)
    WHERE claimed.is_new
    ON CONFLICT (owner, shard) DO UPDATE SET records = c.records + 1
)
SELECT 0 AS state, NULL::bytea AS reply FROM claimed
UNION ALL
SELECT CASE WHEN call <> $2 THEN 1 WHEN reply IS NULL THEN 2 ELSE 3 END, reply FROM found
UNION ALL
SELECT 4, NULL FROM room WHERE NOT room.is_there AND NOT EXISTS (SELECT FROM found)

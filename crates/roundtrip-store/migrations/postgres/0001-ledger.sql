-- Rounds: claimed, or done if there is a reply. `ends` is the end of the lease or of the reply, in milliseconds since 1970.
CREATE TABLE roundtrip_ledger (
    id     bytea  NOT NULL PRIMARY KEY,
    call   bytea  NOT NULL,
    owner  bytea  NOT NULL,
    holder bytea  NOT NULL,
    ends   bigint NOT NULL,
    bytes  bigint NOT NULL DEFAULT 0,
    reply  bytea
);

CREATE INDEX roundtrip_ledger_ends ON roundtrip_ledger (ends);

-- Records and bytes of each caller, and of all together (an empty owner). A count is spread over rows, one for each
-- value of an id's first byte modulo 32: claims that run side by side do not wait for each other's commits.
CREATE TABLE roundtrip_ledger_counts (
    owner   bytea   NOT NULL,
    shard   integer NOT NULL,
    records bigint  NOT NULL,
    bytes   bigint  NOT NULL,
    PRIMARY KEY (owner, shard)
) WITH (fillfactor = 50);

-- Rounds: claimed, or done if there is a reply. `ends` is the end of the lease or of the reply, in milliseconds since 1970.
CREATE TABLE roundtrip_ledger (
    id     BLOB    NOT NULL PRIMARY KEY,
    call   BLOB    NOT NULL,
    owner  BLOB    NOT NULL,
    holder BLOB    NOT NULL,
    ends   INTEGER NOT NULL,
    bytes  INTEGER NOT NULL DEFAULT 0,
    reply  BLOB
) WITHOUT ROWID;

CREATE INDEX roundtrip_ledger_ends ON roundtrip_ledger (ends);

-- Records and bytes of each caller, and of all together (an empty owner).
CREATE TABLE roundtrip_ledger_counts (
    owner   BLOB    NOT NULL PRIMARY KEY,
    records INTEGER NOT NULL,
    bytes   INTEGER NOT NULL
) WITHOUT ROWID;

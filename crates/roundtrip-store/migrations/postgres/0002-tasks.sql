-- Tasks. Times are milliseconds since 1970. Identifiers are compared byte by byte, whatever the language of the database.
CREATE TABLE roundtrip_tasks (
    id      text COLLATE "C" NOT NULL PRIMARY KEY,
    owner   bytea   NOT NULL,
    account bytea   NOT NULL,
    version bigint  NOT NULL,
    fence   bigint  NOT NULL,
    live    boolean NOT NULL,
    due     bigint,
    expires bigint,
    view    bytea   NOT NULL,
    work    bytea   NOT NULL
);

CREATE INDEX roundtrip_tasks_owner ON roundtrip_tasks (owner, id);
CREATE INDEX roundtrip_tasks_due ON roundtrip_tasks (due) WHERE due IS NOT NULL;
CREATE INDEX roundtrip_tasks_expires ON roundtrip_tasks (expires) WHERE expires IS NOT NULL;

-- Number of live tasks of each account. Its row is locked while a task is added, so that the number is never exceeded.
CREATE TABLE roundtrip_tasks_live (
    account bytea  NOT NULL PRIMARY KEY,
    live    bigint NOT NULL
) WITH (fillfactor = 50);

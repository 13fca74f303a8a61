-- Tasks of services. A task without a service is an orphan: the release before stored it, and statements of that release find no table
-- any more, so that it neither takes tasks nor writes them. A row that is not a task's is refused; those that are there are removed.
ALTER TABLE roundtrip_tasks RENAME TO roundtrip_task;

DELETE FROM roundtrip_task
WHERE NOT (id ~ '^[0-9a-f]{32}$' AND octet_length(owner) = 16 AND octet_length(account) = 16);

ALTER TABLE roundtrip_task
    ADD COLUMN service bytea CHECK (octet_length(service) = 16),
    ADD COLUMN kind    bytea CHECK (octet_length(kind) = 16),
    ADD COLUMN held    boolean NOT NULL DEFAULT false,
    ADD COLUMN result  bytea,
    ADD CHECK (id ~ '^[0-9a-f]{32}$'),
    ADD CHECK (octet_length(owner) = 16),
    ADD CHECK (octet_length(account) = 16),
    ADD CHECK ((service IS NULL) = (kind IS NULL));

ALTER TABLE roundtrip_task ALTER COLUMN held DROP DEFAULT;

DROP INDEX roundtrip_tasks_owner, roundtrip_tasks_due, roundtrip_tasks_expires;
CREATE INDEX roundtrip_task_owner ON roundtrip_task (service, owner, id);
-- Tasks of one account and kind are beside each other, the one that is due first in front: the next account is one step away.
CREATE INDEX roundtrip_task_due ON roundtrip_task (service, held, kind, account, due) WHERE due IS NOT NULL;
CREATE INDEX roundtrip_task_expires ON roundtrip_task (service, expires) WHERE expires IS NOT NULL;
CREATE INDEX roundtrip_task_orphans ON roundtrip_task (id) WHERE service IS NULL;

-- Pieces of a task that are written once: 0 is its journal, 1 the parts of its result, 2 its call.
CREATE TABLE roundtrip_task_chunks (
    task   text COLLATE "C" NOT NULL REFERENCES roundtrip_task (id) ON DELETE CASCADE,
    stream smallint NOT NULL CHECK (stream IN (0, 1, 2)),
    number bigint   NOT NULL CHECK (number BETWEEN 0 AND 4294967295),
    bytes  bytea    NOT NULL,
    PRIMARY KEY (task, stream, number)
);

-- Number of live tasks of each account of a service. Its row is locked while a task is added, so that the number is never exceeded.
-- Orphans are not counted.
DROP TABLE roundtrip_tasks_live;
CREATE TABLE roundtrip_task_live (
    service bytea  NOT NULL,
    account bytea  NOT NULL,
    live    bigint NOT NULL,
    PRIMARY KEY (service, account)
) WITH (fillfactor = 50);

-- Tasks of services. Times are milliseconds since 1970. A task without a service is an orphan: the release before stored it, and
-- statements of that release find no table any more, so that it neither takes tasks nor writes them. Columns are ordered by who reads
-- them: SQLite does not read what follows the last column that is asked for. A small call is in its row, so that a task without steps
-- is in one tree only; a large one is a piece, since SQLite writes a row whole. A row that is not a task's is refused.
CREATE TABLE roundtrip_task (
    id      TEXT    NOT NULL PRIMARY KEY CHECK (length(unhex(id)) IS 16 AND id = lower(id)),
    service BLOB    CHECK (length(service) = 16),
    owner   BLOB    NOT NULL CHECK (length(owner) = 16),
    account BLOB    NOT NULL CHECK (length(account) = 16),
    kind    BLOB    CHECK (length(kind) = 16),
    version INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    held    INTEGER NOT NULL CHECK (held IN (0, 1)),
    live    INTEGER NOT NULL CHECK (live IN (0, 1)),
    due     INTEGER,
    expires INTEGER,
    changed INTEGER NOT NULL,
    origin  BLOB    NOT NULL,
    view    BLOB    NOT NULL,
    work    BLOB    NOT NULL,
    result  BLOB,
    call    BLOB,
    CHECK ((service IS NULL) = (kind IS NULL))
) STRICT;

-- Pieces of a task that are written once: 0 is its journal, 1 the parts of its result, 2 its call, if it is large.
CREATE TABLE roundtrip_task_chunks (
    task   TEXT    NOT NULL,
    stream INTEGER NOT NULL CHECK (stream BETWEEN 0 AND 2),
    number INTEGER NOT NULL CHECK (number BETWEEN 0 AND 4294967295),
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (task, stream, number)
) STRICT, WITHOUT ROWID;

-- Rows that are not a task's are left out.
INSERT INTO roundtrip_task
    (id, owner, account, version, fence, held, live, due, expires, changed, origin, view, work)
SELECT id, owner, account, version, fence, 0, live, due, expires, changed, origin, view, work
FROM roundtrip_tasks
WHERE typeof(id) = 'text' AND length(CAST(id AS BLOB)) = 32 AND id NOT GLOB '*[^0-9a-f]*'
    AND typeof(owner) = 'blob' AND length(owner) = 16
    AND typeof(account) = 'blob' AND length(account) = 16
    AND typeof(version) = 'integer' AND typeof(fence) = 'integer'
    AND live IN (0, 1)
    AND typeof(due) IN ('integer', 'null') AND typeof(expires) IN ('integer', 'null')
    AND typeof(changed) = 'integer' AND typeof(origin) = 'blob'
    AND typeof(view) = 'blob' AND typeof(work) = 'blob';

DROP TABLE roundtrip_tasks;
DROP TABLE roundtrip_tasks_live;
ALTER TABLE roundtrip_tasks_changes RENAME TO roundtrip_task_changes;
-- No two rows have the number of one change, whatever the counter was before.
UPDATE roundtrip_task_changes SET last = max(last, coalesce((SELECT max(changed) FROM roundtrip_task), 0));

CREATE INDEX roundtrip_task_owner ON roundtrip_task (service, owner, id);
-- Tasks of one account and kind are beside each other, the one that is due first in front: the next account is one step away.
CREATE INDEX roundtrip_task_due ON roundtrip_task (service, held, kind, account, due) WHERE due IS NOT NULL;
CREATE INDEX roundtrip_task_expires ON roundtrip_task (service, expires) WHERE expires IS NOT NULL;
CREATE INDEX roundtrip_task_orphans ON roundtrip_task (id) WHERE service IS NULL;
CREATE UNIQUE INDEX roundtrip_task_changed ON roundtrip_task (changed);

-- Number of live tasks of each account of a service. Triggers count, so that no statement can forget to. Orphans are not counted,
-- and a task that has ended does not live again.
CREATE TABLE roundtrip_task_live (
    service BLOB    NOT NULL,
    account BLOB    NOT NULL,
    live    INTEGER NOT NULL,
    PRIMARY KEY (service, account)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER roundtrip_task_created AFTER INSERT ON roundtrip_task WHEN new.live AND new.service IS NOT NULL
BEGIN
    INSERT INTO roundtrip_task_live VALUES (new.service, new.account, 1)
    ON CONFLICT (service, account) DO UPDATE SET live = live + 1;
END;

CREATE TRIGGER roundtrip_task_adopted AFTER UPDATE OF service ON roundtrip_task
WHEN new.live AND new.service IS NOT NULL AND old.service IS NULL
BEGIN
    INSERT INTO roundtrip_task_live VALUES (new.service, new.account, 1)
    ON CONFLICT (service, account) DO UPDATE SET live = live + 1;
END;

CREATE TRIGGER roundtrip_task_ended AFTER UPDATE OF live ON roundtrip_task WHEN old.live AND NOT new.live
BEGIN
    UPDATE roundtrip_task_live SET live = live - 1 WHERE service = old.service AND account = old.account;
    DELETE FROM roundtrip_task_live WHERE service = old.service AND account = old.account AND live <= 0;
    -- A list of streams would be a table of its own each time. A call is in the row, or it is a piece.
    DELETE FROM roundtrip_task_chunks WHERE task = old.id AND stream = 0;
    DELETE FROM roundtrip_task_chunks WHERE task = old.id AND stream = 2 AND old.call IS NULL;
END;

CREATE TRIGGER roundtrip_task_removed AFTER DELETE ON roundtrip_task
BEGIN
    UPDATE roundtrip_task_live SET live = live - 1
    WHERE old.live AND service = old.service AND account = old.account;
    DELETE FROM roundtrip_task_live WHERE service = old.service AND account = old.account AND live <= 0;
    DELETE FROM roundtrip_task_chunks WHERE task = old.id;
END;

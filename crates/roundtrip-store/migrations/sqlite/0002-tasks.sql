-- Tasks. Times are milliseconds since 1970; `work` is last, so that a look at the rest does not read it.
CREATE TABLE roundtrip_tasks (
    id      TEXT    NOT NULL PRIMARY KEY,
    owner   BLOB    NOT NULL,
    account BLOB    NOT NULL,
    version INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    live    INTEGER NOT NULL,
    due     INTEGER,
    expires INTEGER,
    changed INTEGER NOT NULL,
    origin  BLOB    NOT NULL,
    view    BLOB    NOT NULL,
    work    BLOB    NOT NULL
);

CREATE INDEX roundtrip_tasks_owner ON roundtrip_tasks (owner, id);
CREATE INDEX roundtrip_tasks_due ON roundtrip_tasks (due) WHERE due IS NOT NULL;
CREATE INDEX roundtrip_tasks_expires ON roundtrip_tasks (expires) WHERE expires IS NOT NULL;
CREATE UNIQUE INDEX roundtrip_tasks_changed ON roundtrip_tasks (changed);

-- Number of the last change of any task: by `changed`, a process finds what others have changed since it looked.
CREATE TABLE roundtrip_tasks_changes (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
);

INSERT INTO roundtrip_tasks_changes VALUES (1, 0);

-- Number of live tasks of each account. Triggers count, so that no statement can forget to.
CREATE TABLE roundtrip_tasks_live (
    account BLOB    NOT NULL PRIMARY KEY,
    live    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER roundtrip_tasks_created AFTER INSERT ON roundtrip_tasks WHEN new.live
BEGIN
    INSERT INTO roundtrip_tasks_live VALUES (new.account, 1) ON CONFLICT (account) DO UPDATE SET live = live + 1;
END;

CREATE TRIGGER roundtrip_tasks_revived AFTER UPDATE OF live ON roundtrip_tasks WHEN new.live AND NOT old.live
BEGIN
    INSERT INTO roundtrip_tasks_live VALUES (new.account, 1) ON CONFLICT (account) DO UPDATE SET live = live + 1;
END;

CREATE TRIGGER roundtrip_tasks_ended AFTER UPDATE OF live ON roundtrip_tasks WHEN old.live AND NOT new.live
BEGIN
    UPDATE roundtrip_tasks_live SET live = live - 1 WHERE account = old.account;
    DELETE FROM roundtrip_tasks_live WHERE account = old.account AND live <= 0;
END;

CREATE TRIGGER roundtrip_tasks_removed AFTER DELETE ON roundtrip_tasks WHEN old.live
BEGIN
    UPDATE roundtrip_tasks_live SET live = live - 1 WHERE account = old.account;
    DELETE FROM roundtrip_tasks_live WHERE account = old.account AND live <= 0;
END;

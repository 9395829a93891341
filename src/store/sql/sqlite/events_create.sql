-- What operators did. Made by the first act: who has none does not read it at every run.
CREATE TABLE IF NOT EXISTS events (
    token_group TEXT NOT NULL,
    at          TEXT NOT NULL,
    tick        INTEGER NOT NULL,
    domain      TEXT NOT NULL,
    version     INTEGER NOT NULL,
    act         TEXT NOT NULL,
    client      TEXT,
    until       TEXT,
    once_key    TEXT,
    fence       INTEGER NOT NULL,
    act_by      TEXT NOT NULL,
    host        TEXT,
    reason      TEXT,
    PRIMARY KEY (token_group, at, version)
) STRICT, WITHOUT ROWID;

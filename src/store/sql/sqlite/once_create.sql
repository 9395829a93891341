-- The keys of --once that are done. Made by the first: who has none does not read it at
-- every run.
CREATE TABLE IF NOT EXISTS once (
    token_group TEXT NOT NULL,
    once_key    TEXT NOT NULL,
    done_at     TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    session     TEXT NOT NULL,
    client      TEXT NOT NULL,
    PRIMARY KEY (token_group, once_key)
) STRICT, WITHOUT ROWID;

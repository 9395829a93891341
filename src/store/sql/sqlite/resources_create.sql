-- The highest fence that has used each resource. Made by the first: who has none does not
-- read it at every run.
CREATE TABLE IF NOT EXISTS resources (
    resource    TEXT PRIMARY KEY NOT NULL,
    fence       INTEGER NOT NULL,
    advanced_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Times are there twice where ages count: `…_at` is the wall clock in UTC, for people; `…_tick` is
-- the clock that ages are judged by, in milliseconds, and means nothing outside its clock epoch. Tables
-- without row ids, so that a swap writes one page for the token and one for its history. What is
-- inside of a statement is read anew by every process: comments stand outside.

-- state: free, idle, running. version: random, new at every write. stamped_at, stamped_tick,
-- clock_epoch: when the swap was made that the document calls stamp_of. document: everything else, as
-- JSON; the view token_status shows it in rows. pruning_note: what the last pruning of the
-- group's records left for the next, as JSON. The row without a group is the note of the store's
-- incarnation (fence 0, state 'note'): it stands here so that the look at a token reads it along.
CREATE TABLE tokens (
    token_group     TEXT PRIMARY KEY NOT NULL,
    version         INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    state           TEXT NOT NULL,
    client_bound    TEXT,
    expected_client TEXT,
    stamped_at      TEXT NOT NULL,
    stamped_tick    INTEGER NOT NULL,
    clock_epoch     TEXT NOT NULL,
    document        TEXT NOT NULL,
    pruning_note    TEXT
) STRICT, WITHOUT ROWID;

-- The runs that are over; a run that goes on stands in its token. outcome: succeeded, failed,
-- signalled, timed_out, lost, not_started, unknown. document: everything else, as JSON.
CREATE TABLE runs (
    token_group TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    session     TEXT NOT NULL,
    client      TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    started_at  TEXT NOT NULL,
    ended_at    TEXT NOT NULL,
    document    TEXT NOT NULL,
    written_at  TEXT NOT NULL,
    PRIMARY KEY (token_group, fence, session)
) STRICT, WITHOUT ROWID;

-- The queue, by arrival (position). seen_at, seen_tick: the last sign of life, by the clock of clock_epoch;
-- one that gave none for 2.5 s is not in the queue any more.
CREATE TABLE waiters (
    token_group TEXT NOT NULL,
    position    INTEGER NOT NULL,
    session     TEXT NOT NULL,
    seen_at     TEXT NOT NULL,
    seen_tick   INTEGER NOT NULL,
    clock_epoch TEXT NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (token_group, position)
) STRICT, WITHOUT ROWID;

-- What operators did.
CREATE TABLE acts (
    token_group TEXT NOT NULL,
    at          TEXT NOT NULL,
    version     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (token_group, at, version)
) STRICT, WITHOUT ROWID;

-- The keys of --once that are done.
CREATE TABLE done_keys (
    token_group TEXT NOT NULL,
    once_key    TEXT NOT NULL,
    done_at     TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (token_group, once_key)
) STRICT, WITHOUT ROWID;

-- The highest fence that has used each resource.
CREATE TABLE resources (
    resource    TEXT PRIMARY KEY NOT NULL,
    fence       INTEGER NOT NULL,
    advanced_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A token's document, a row for each field, for people. Durations are in milliseconds; stamps of the
-- past are wall times in milliseconds since 1970. Short, because every process parses it.
CREATE VIEW token_status AS SELECT token_group, fullkey AS field, atom AS value
FROM tokens, json_tree(document) WHERE token_group <> '' AND atom IS NOT NULL;

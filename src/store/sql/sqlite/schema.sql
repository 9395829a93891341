-- Where ages count, a time has two columns. `…_at` is the wall clock in UTC, for people. `…_tick` is the
-- clock that ages are judged by, in milliseconds, and means nothing outside its clock epoch. The tables
-- have no row ids, so a swap writes one page for the token and one for its history. Every process parses
-- the text of each CREATE statement, so comments stand outside the statements.

-- state: free, idle, running. version: random, new with every write. stamped_at, stamped_tick,
-- clock_epoch: the time of the swap that the document names in stamp_of. document: all other fields, as
-- JSON; the view token_status shows them in rows. pruning_note: the note of the last pruning of the
-- group's records for the next one, as JSON. The row without a group is the note of the store's
-- incarnation (fence 0, state 'note'). It is in this table so that the look at a token reads it too.
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

-- Finished runs. The record of a running one is its token. outcome: succeeded, failed, signalled,
-- timed_out, lost, not_started, unknown. document: all other fields, as JSON.
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

-- The queue, by order of arrival (position). seen_at, seen_tick: the last heartbeat, by the clock of
-- clock_epoch. A waiter without a heartbeat for 2.5 s is no longer in the queue.
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

-- Acts of operators.
CREATE TABLE acts (
    token_group TEXT NOT NULL,
    at          TEXT NOT NULL,
    version     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (token_group, at, version)
) STRICT, WITHOUT ROWID;

-- Refused runs. Refusals of a client for a cause (the reason, with its names) that are close to each other
-- are one row. last_at: the last of them; count: their number; document: all other fields, as JSON.
CREATE TABLE refusals (
    token_group TEXT NOT NULL,
    client      TEXT NOT NULL,
    reason      TEXT NOT NULL,
    cause       TEXT NOT NULL,
    first_at    TEXT NOT NULL,
    last_at     TEXT NOT NULL,
    count       INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (token_group, client, cause, first_at)
) STRICT, WITHOUT ROWID;

-- The numbers of refusals. Pruning takes none of them back.
CREATE TABLE refusal_totals (
    token_group TEXT NOT NULL,
    reason      TEXT NOT NULL,
    total       INTEGER NOT NULL,
    PRIMARY KEY (token_group, reason)
) STRICT, WITHOUT ROWID;

-- The output of finished runs with --capture. document: JSON, with the output's last bytes in base64. It
-- has row ids, because its rows are long.
CREATE TABLE outputs (
    token_group TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    session     TEXT NOT NULL,
    written_at  TEXT NOT NULL,
    document    TEXT NOT NULL,
    PRIMARY KEY (token_group, fence, session)
) STRICT;

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

-- A token's document, for people, with a row for each field. Durations are in milliseconds. Earlier stamps
-- are wall times in milliseconds since 1970. The view is short because every process parses it.
CREATE VIEW token_status AS SELECT token_group, fullkey AS field, atom AS value
FROM tokens, json_tree(document) WHERE token_group <> '' AND atom IS NOT NULL;

-- The schema of version 1. It is changed by adding only: a program that knows
-- an older version goes on working, down to the last three digits of user_version;
-- those before them are the schema's own version.
--
-- Times are there twice: `…_at` is the wall clock in UTC, for people; `…_tick`
-- is the clock that ages are judged by, in milliseconds, and means nothing
-- outside its domain: `domain` for the stamp that the state is judged by,
-- granted_domain for acquired_tick. Tables without row ids, so that a swap writes
-- one page for the token and one for its history. What is inside of a statement is read
-- anew by every process: comments stand outside.

-- state: free, idle, running. revoke_requested: 0, 1. not_before_ms: since
-- acquired_at. version: random, new at every write. session_version: the last that
-- the session itself wrote. pruning_note: what the last pruning of the group's records left for
-- the next, in JSON.
CREATE TABLE tokens (
    token_group       TEXT PRIMARY KEY NOT NULL,
    state             TEXT NOT NULL,
    client_bound      TEXT,
    expected_client   TEXT,
    session           TEXT,
    fence             INTEGER NOT NULL,
    host              TEXT,
    pid               INTEGER,
    label             TEXT,
    heartbeat_at      TEXT,
    heartbeat_tick    INTEGER,
    acquired_at       TEXT,
    acquired_tick     INTEGER,
    released_at       TEXT,
    released_tick     INTEGER,
    created_at        TEXT NOT NULL,
    created_tick      INTEGER NOT NULL,
    domain            TEXT NOT NULL,
    granted_domain    TEXT,
    takeover_after_ms INTEGER NOT NULL,
    keep_ms           INTEGER NOT NULL,
    head_start_ms     INTEGER NOT NULL,
    not_before_ms     INTEGER NOT NULL,
    lock_file         TEXT,
    paused_by         TEXT,
    paused_reason     TEXT,
    paused_until      TEXT,
    handoff_to        TEXT,
    handoff_at        TEXT,
    revoke_requested  INTEGER NOT NULL,
    last_outcome      TEXT,
    runs              INTEGER NOT NULL,
    failures          INTEGER NOT NULL,
    takeovers         INTEGER NOT NULL,
    losses            INTEGER NOT NULL,
    version           INTEGER NOT NULL,
    session_version   INTEGER,
    handoff_failback  INTEGER NOT NULL DEFAULT 0,
    pruning_note      TEXT
) STRICT, WITHOUT ROWID;

-- grant_kind: bind, renew, takeover, failback, handoff. outcome: running, succeeded,
-- failed, signalled, timed_out, lost, not_started, unknown.
CREATE TABLE runs (
    token_group     TEXT NOT NULL,
    fence           INTEGER NOT NULL,
    session         TEXT NOT NULL,
    client          TEXT NOT NULL,
    previous_client TEXT,
    host            TEXT,
    pid             INTEGER,
    label           TEXT,
    program         TEXT NOT NULL,
    once_key        TEXT,
    grant_kind      TEXT NOT NULL,
    started_at      TEXT NOT NULL,
    ended_at        TEXT,
    outcome         TEXT NOT NULL,
    exit_code       INTEGER,
    signal          INTEGER,
    PRIMARY KEY (token_group, fence)
) STRICT, WITHOUT ROWID;

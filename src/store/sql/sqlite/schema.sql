-- Times are there twice where ages count: `…_at` is the wall clock in UTC, for people; `…_tick` is
-- the clock that ages are judged by, in milliseconds, and means nothing outside its clock epoch. Tables
-- without row ids, so that a swap writes one page for the token and one for its history. What is
-- inside of a statement is read anew by every process: comments stand outside.

-- state: free, idle, running. version: random, new at every write. stamped_at, stamped_tick,
-- clock_epoch: when the swap was made that the document calls stamp_of. document: everything else, as
-- JSON; the view token_status shows it in columns. pruning_note: what the last pruning of the
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
    position       INTEGER NOT NULL,
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

-- A token's columns and its document, for people. Durations are in milliseconds; stamps of the past
-- are wall times in milliseconds since 1970.
CREATE VIEW token_status AS SELECT
    token_group, version, fence, state, client_bound, expected_client,
    stamped_at, stamped_tick, clock_epoch,
    document ->> 'stamp_of' AS stamp_of,
    document ->> 'session_version' AS session_version,
    document ->> 'granted_epoch' AS granted_epoch,
    CASE document ->> 'stamp_of' WHEN 'granted' THEN stamped_tick
        ELSE document ->> '$.acquired.tick_ms' END AS acquired_tick,
    document ->> 'takeover_after_ms' AS takeover_after_ms,
    document ->> 'keep_ms' AS keep_ms,
    document ->> 'head_start_ms' AS head_start_ms,
    document ->> 'not_before_ms' AS not_before_ms,
    document ->> 'host' AS host,
    document ->> 'pid' AS pid,
    document ->> 'label' AS label,
    document ->> '$.run.session' AS session,
    document ->> '$.run.program' AS program,
    document ->> '$.run.once_key' AS once_key,
    document ->> '$.run.lock_file' AS lock_file,
    document ->> '$.pause.by' AS paused_by,
    document ->> '$.pause.reason' AS paused_reason,
    document ->> '$.pause.until_ms' AS paused_until_ms,
    document ->> '$.handoff.to' AS handoff_to,
    coalesce(document ->> 'revoke', 0) AS revoke_requested,
    document ->> 'last_outcome' AS last_outcome,
    document ->> 'runs' AS runs,
    document ->> 'failures' AS failures,
    document ->> 'takeovers' AS takeovers,
    document ->> 'losses' AS losses
FROM tokens WHERE token_group <> '';

-- A token's row is written by every heartbeat, so it has no index but its key. Names are compared by their
-- characters: two groups that differ in case, in accents or in blanks are two groups.
CREATE TABLE IF NOT EXISTS tokenrun_tokens (
    token_group     varchar(200) NOT NULL PRIMARY KEY,
    -- random, new with every write
    version         bigint NOT NULL,
    fence           bigint NOT NULL,
    -- free, idle, running
    state           varchar(20) NOT NULL,
    client_bound    varchar(200),
    expected_client varchar(200),
    -- the time of the swap that the document names in stamp_of, in UTC, and the clock epoch of that time
    stamped_at      datetime(6) NOT NULL,
    clock_epoch     varchar(300) NOT NULL,
    -- all other fields, in JSON; the view tokenrun_status shows them in columns
    document        longtext NOT NULL,
    -- the note of the last pruning of the group's records for the next one, in JSON
    pruning_note    longtext
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- The fence of each token once more, in a row that no heartbeat writes: a job's transaction may lock it. While
-- no run has the token it is -1 less the fence, which no call of tokenrun_fence finds.
CREATE TABLE IF NOT EXISTS tokenrun_fences (
    token_group varchar(200) NOT NULL PRIMARY KEY,
    fence       bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- Finished runs. The record of a running one is its token. outcome: succeeded, failed, signalled, timed_out,
-- lost, not_started, unknown. document: all other fields.
CREATE TABLE IF NOT EXISTS tokenrun_runs (
    token_group varchar(200) NOT NULL,
    fence       bigint NOT NULL,
    session     varchar(200) NOT NULL,
    client      varchar(200) NOT NULL,
    outcome     varchar(20) NOT NULL,
    started_at  datetime(6) NOT NULL,
    ended_at    datetime(6) NOT NULL,
    document    longtext NOT NULL,
    written_at  datetime(6) NOT NULL,
    PRIMARY KEY (token_group, fence, session),
    KEY runs_newest (started_at, fence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- The queue, by order of arrival (position). seen_at: the last heartbeat, by the clock of clock_epoch. A waiter
-- without a heartbeat for 2.5 s is no longer in the queue.
CREATE TABLE IF NOT EXISTS tokenrun_waiters (
    token_group varchar(200) NOT NULL,
    session     varchar(200) NOT NULL,
    position    bigint NOT NULL AUTO_INCREMENT UNIQUE,
    seen_at     datetime(6) NOT NULL,
    clock_epoch varchar(300) NOT NULL,
    document    longtext NOT NULL,
    PRIMARY KEY (token_group, session)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- Acts of operators. version: the version that the act wrote into the row.
CREATE TABLE IF NOT EXISTS tokenrun_acts (
    token_group varchar(200) NOT NULL,
    at          datetime(6) NOT NULL,
    version     bigint NOT NULL,
    fence       bigint NOT NULL,
    document    longtext NOT NULL,
    PRIMARY KEY (token_group, at, version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- Refused runs. Refusals of a client for a cause (the reason, with its names) that are close to each other are
-- one row. last_at: the last of them; count: their number; document: all other fields.
CREATE TABLE IF NOT EXISTS tokenrun_refusals (
    token_group varchar(200) NOT NULL,
    client      varchar(200) NOT NULL,
    reason      varchar(200) NOT NULL,
    cause       varchar(200) NOT NULL,
    first_at    datetime(6) NOT NULL,
    last_at     datetime(6) NOT NULL,
    count       bigint NOT NULL,
    fence       bigint NOT NULL,
    document    longtext NOT NULL,
    PRIMARY KEY (token_group, client, cause, first_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- The numbers of refusals. Pruning takes none of them back.
CREATE TABLE IF NOT EXISTS tokenrun_refusal_totals (
    token_group varchar(200) NOT NULL,
    reason      varchar(200) NOT NULL,
    total       bigint NOT NULL,
    PRIMARY KEY (token_group, reason)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- The output of finished runs with --capture. document: the output's last bytes, in base64.
CREATE TABLE IF NOT EXISTS tokenrun_outputs (
    token_group varchar(200) NOT NULL,
    fence       bigint NOT NULL,
    session     varchar(200) NOT NULL,
    written_at  datetime(6) NOT NULL,
    document    longtext NOT NULL,
    PRIMARY KEY (token_group, fence, session)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- The keys of --once that are done, each at most once.
CREATE TABLE IF NOT EXISTS tokenrun_done_keys (
    token_group varchar(200) NOT NULL,
    once_key    varchar(200) NOT NULL,
    done_at     datetime(6) NOT NULL,
    fence       bigint NOT NULL,
    document    longtext NOT NULL,
    PRIMARY KEY (token_group, once_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- The highest fence that has used each resource.
CREATE TABLE IF NOT EXISTS tokenrun_resources (
    resource    varchar(200) NOT NULL PRIMARY KEY,
    fence       bigint NOT NULL,
    advanced_at datetime(6) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- One row, which every look at a token reads: once it is there, the store is complete.
CREATE TABLE IF NOT EXISTS tokenrun_meta (
    one           tinyint NOT NULL PRIMARY KEY,
    -- the version of these tables
    version       varchar(20) NOT NULL,
    -- the oldest program that may use them
    oldest_reader varchar(20) NOT NULL,
    -- the note of the incarnation, in JSON
    note          longtext,
    -- random, new with every write of the note
    note_version  bigint
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {binary};

-- A token's columns and its document, for people. Durations are in milliseconds.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW tokenrun_status AS SELECT
    token_group, version, fence, state, client_bound, expected_client, stamped_at, clock_epoch,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.stamp_of')) AS stamp_of,
    CASE WHEN state = 'running' THEN stamped_at END AS heartbeat_at,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.session_version')) AS session_version,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.granted_epoch')) AS granted_epoch,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.takeover_after_ms')) AS takeover_after_ms,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.keep_ms')) AS keep_ms,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.head_start_ms')) AS head_start_ms,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.not_before_ms')) AS not_before_ms,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.host')) AS host,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.pid')) AS pid,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.label')) AS label,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.run.session')) AS session,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.run.program')) AS program,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.run.once_key')) AS once_key,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.run.lock_file')) AS lock_file,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.pause.by')) AS paused_by,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.pause.reason')) AS paused_reason,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.pause.until_ms')) AS paused_until_ms,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.handoff.to')) AS handoff_to,
    COALESCE(JSON_UNQUOTE(JSON_EXTRACT(document, '$.revoke')), 'false') AS revoke_requested,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.last_outcome')) AS last_outcome,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.runs')) AS runs,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.failures')) AS failures,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.takeovers')) AS takeovers,
    JSON_UNQUOTE(JSON_EXTRACT(document, '$.losses')) AS losses
FROM tokenrun_tokens

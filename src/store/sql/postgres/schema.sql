-- Never put an index on a column that a heartbeat writes (version, stamped_at, clock_epoch, document). It
-- would turn cheap updates in place (HOT) into updates that grow every index of the table. The tables
-- are logged, because the holder of a token must survive a crash of the server.

-- One row, which every look at a token reads.
CREATE TABLE meta (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- the version of these tables
    version       text NOT NULL,
    -- the oldest program that may use them
    oldest_reader text NOT NULL,
    -- the note of the incarnation, in JSON
    note          text,
    -- random, new with every write of the note
    note_version  bigint,
    -- the transaction that wrote the note; in a restored row it differs from xmin
    written_by    text
);

-- A new store has no past, so it can't have forgotten a grant.
INSERT INTO meta (version, oldest_reader, note, note_version, written_by)
SELECT
    '1',
    '1',
    json_build_object(
        'version', 0,
        'incarnation', concat_ws('-', system_identifier, timeline, database.oid),
        'epoch', concat_ws(' ', to_char(
            pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
        ), timeline),
        'first_seen', json_build_object('tick_ms', now_ms, 'wall_ms', now_ms),
        'durable_then', current_setting('fsync') = 'on',
        'served', 'everything',
        'why', 'new'
    )::text,
    0,
    pg_current_xact_id()::text
FROM
    pg_control_system(),
    (SELECT oid FROM pg_database WHERE datname = current_database()) AS database,
    (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS clock (now_ms),
    (SELECT left(pg_walfile_name('0/1'), -16)) AS log (timeline);

CREATE TABLE tokens (
    token_group     text COLLATE "C" PRIMARY KEY,
    -- random, new with every write
    version         bigint NOT NULL,
    fence           bigint NOT NULL,
    -- free, idle, running
    state           text NOT NULL,
    client_bound    text,
    expected_client text,
    -- the time of the swap that the document names in stamp_of, and the clock epoch of that time
    stamped_at      timestamptz NOT NULL,
    clock_epoch     text NOT NULL,
    -- all other fields; the view token_status shows them in columns
    document        jsonb NOT NULL,
    -- the note of the last pruning of the group's records for the next one, in JSON
    pruning_note    text,
    -- makes the fence part of a key: a lock on the key holds off a new grant, and not a heartbeat
    UNIQUE (token_group, fence)
) WITH (fillfactor = 50);

-- A token's columns and its document, for people. Durations are in milliseconds.
CREATE VIEW token_status AS SELECT
    token_group, version, fence, state, client_bound, expected_client, stamped_at, clock_epoch,
    document ->> 'stamp_of' AS stamp_of,
    CASE WHEN state = 'running' THEN stamped_at END AS heartbeat_at,
    (document ->> 'session_version')::bigint AS session_version,
    document ->> 'granted_epoch' AS granted_epoch,
    (document ->> 'takeover_after_ms')::bigint AS takeover_after_ms,
    (document ->> 'keep_ms')::bigint AS keep_ms,
    (document ->> 'head_start_ms')::bigint AS head_start_ms,
    (document ->> 'not_before_ms')::bigint AS not_before_ms,
    document ->> 'host' AS host,
    (document ->> 'pid')::bigint AS pid,
    document ->> 'label' AS label,
    document #>> '{run,session}' AS session,
    document #>> '{run,program}' AS program,
    document #>> '{run,once_key}' AS once_key,
    document #>> '{run,lock_file}' AS lock_file,
    document #>> '{pause,by}' AS paused_by,
    document #>> '{pause,reason}' AS paused_reason,
    (document #>> '{pause,until_ms}')::bigint AS paused_until_ms,
    document #>> '{handoff,to}' AS handoff_to,
    coalesce((document ->> 'revoke')::boolean, false) AS revoke_requested,
    document ->> 'last_outcome' AS last_outcome,
    (document ->> 'runs')::bigint AS runs,
    (document ->> 'failures')::bigint AS failures,
    (document ->> 'takeovers')::bigint AS takeovers,
    (document ->> 'losses')::bigint AS losses
FROM tokens;

-- Finished runs. The record of a running one is its token. outcome: succeeded, failed, signalled,
-- timed_out, lost, not_started, unknown. document: all other fields.
CREATE TABLE runs (
    token_group text COLLATE "C" NOT NULL,
    fence       bigint NOT NULL,
    session     text NOT NULL,
    client      text NOT NULL,
    outcome     text NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    document    jsonb NOT NULL,
    written_at  timestamptz NOT NULL,
    PRIMARY KEY (token_group, fence, session)
);

CREATE INDEX runs_newest ON runs (started_at DESC, fence DESC);

-- The queue, by order of arrival (position). seen_at: the last heartbeat, by the clock of clock_epoch. A
-- waiter without a heartbeat for 2.5 s is no longer in the queue.
CREATE TABLE waiters (
    token_group text COLLATE "C" NOT NULL,
    session     text NOT NULL,
    position    bigint GENERATED ALWAYS AS IDENTITY,
    seen_at     timestamptz NOT NULL,
    clock_epoch text NOT NULL,
    document    jsonb NOT NULL,
    PRIMARY KEY (token_group, session)
) WITH (fillfactor = 50);

-- Acts of operators.
CREATE TABLE acts (
    token_group text COLLATE "C" NOT NULL,
    at          timestamptz NOT NULL,
    -- the version that the act wrote into the row
    version     bigint NOT NULL,
    fence       bigint NOT NULL,
    document    jsonb NOT NULL,
    PRIMARY KEY (token_group, at, version)
);

-- Refused runs. Refusals of a client for a cause (the reason, with its names) that are close to each other
-- are one row. last_at: the last of them; count: their number; document: all other fields.
CREATE TABLE refusals (
    token_group text COLLATE "C" NOT NULL,
    client      text COLLATE "C" NOT NULL,
    reason      text NOT NULL,
    cause       text COLLATE "C" NOT NULL,
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    count       bigint NOT NULL,
    fence       bigint NOT NULL,
    document    jsonb NOT NULL,
    PRIMARY KEY (token_group, client, cause, first_at)
);

-- The numbers of refusals. Pruning takes none of them back.
CREATE TABLE refusal_totals (
    token_group text COLLATE "C" NOT NULL,
    reason      text COLLATE "C" NOT NULL,
    total       bigint NOT NULL,
    PRIMARY KEY (token_group, reason)
) WITH (fillfactor = 50);

-- The output of finished runs with --capture. document: the output's last bytes, in base64.
CREATE TABLE outputs (
    token_group text COLLATE "C" NOT NULL,
    fence       bigint NOT NULL,
    session     text NOT NULL,
    written_at  timestamptz NOT NULL,
    document    jsonb NOT NULL,
    PRIMARY KEY (token_group, fence, session)
);

-- The keys of --once that are done, each at most once.
CREATE TABLE done_keys (
    token_group text COLLATE "C" NOT NULL,
    once_key    text COLLATE "C" NOT NULL,
    done_at     timestamptz NOT NULL,
    fence       bigint NOT NULL,
    document    jsonb NOT NULL,
    PRIMARY KEY (token_group, once_key)
);

-- The highest fence that has used each resource.
CREATE TABLE resources (
    resource    text COLLATE "C" PRIMARY KEY,
    fence       bigint NOT NULL,
    advanced_at timestamptz NOT NULL
);

-- For a job's own transaction. It holds off a takeover until the transaction ends, and no heartbeat. It
-- raises an error if the fence is stale. It runs with its owner's rights, so a job's role needs no
-- rights on the tables.
CREATE FUNCTION tokenrun_fence(token_group text, fence bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $do$
BEGIN
    PERFORM FROM tokens AS token
    WHERE token.token_group = $1 AND token.fence = $2 AND token.state = 'running'
    FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the fence % of group % is stale', $2, $1
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Another session has the token, or it is free: end this job.';
    END IF;
END
$do$;

-- The schema of version 1. It is changed by adding only: a program that knows an older
-- version, down to meta's oldest_reader, goes on working.
--
-- Never put an index on heartbeat_at, or on anything else that a heartbeat writes
-- (version, session_version, domain): it would turn cheap updates in place into ones
-- that grow every index of the table. The table is logged: a crash of the server must
-- not forget who holds a token.

CREATE TABLE {schema}.meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO {schema}.meta (name, value) VALUES ('version', '1'), ('oldest_reader', '1');

CREATE TABLE {schema}.tokens (
    token_group       text COLLATE "C" PRIMARY KEY,
    -- free, idle, running
    state             text NOT NULL,
    client_bound      text,
    expected_client   text,
    session           text,
    fence             bigint NOT NULL,
    host              text,
    pid               integer,
    label             text,
    heartbeat_at      timestamptz,
    acquired_at       timestamptz,
    released_at       timestamptz,
    created_at        timestamptz NOT NULL,
    -- where the stamp comes from that the state is judged by; granted_domain: acquired_at
    domain            text NOT NULL,
    granted_domain    text,
    takeover_after_ms bigint NOT NULL,
    keep_ms           bigint NOT NULL,
    head_start_ms     bigint NOT NULL,
    -- since acquired_at
    not_before_ms     bigint NOT NULL,
    lock_file         text,
    paused_by         text,
    paused_reason     text,
    paused_until      timestamptz,
    handoff_to        text,
    handoff_at        timestamptz,
    revoke_requested  boolean NOT NULL,
    last_outcome      text,
    runs              bigint NOT NULL,
    failures          bigint NOT NULL,
    takeovers         bigint NOT NULL,
    losses            bigint NOT NULL,
    -- how runs have ended; failures counts signalled and timed_out as well, losses vanished.
    -- forced: freed by force, by an operator
    succeeded         bigint NOT NULL,
    signalled         bigint NOT NULL,
    timed_out         bigint NOT NULL,
    not_started       bigint NOT NULL,
    vanished          bigint NOT NULL,
    forced            bigint NOT NULL,
    -- random, new at every write; session_version: the last that the session itself wrote
    version           bigint NOT NULL,
    session_version   bigint,
    -- the target left the handoff itself, for its failback
    handoff_failback  boolean NOT NULL DEFAULT false,
    -- what the last pruning of the group's records left for the next, in JSON
    pruning_note      text,
    -- makes the fence part of a key, so that a lock on the key holds a new grant off
    -- and lets heartbeats pass
    UNIQUE (token_group, fence)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.runs (
    token_group     text COLLATE "C" NOT NULL,
    fence           bigint NOT NULL,
    session         text NOT NULL,
    client          text NOT NULL,
    previous_client text,
    host            text,
    pid             integer,
    label           text,
    program         text NOT NULL,
    once_key        text,
    -- bind, renew, takeover, failback, handoff
    grant_kind      text NOT NULL,
    started_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    -- running, succeeded, failed, signalled, timed_out, lost, not_started, unknown
    outcome         text NOT NULL,
    exit_code       integer,
    signal          integer,
    PRIMARY KEY (token_group, fence)
);

CREATE INDEX runs_newest ON {schema}.runs (started_at DESC, fence DESC);

-- For a job's own transaction: holds a takeover off until the transaction ends, while
-- heartbeats pass; raises if the fence is stale. It runs with its owner's rights, so
-- that a job's role needs none on the tables.
CREATE FUNCTION {schema}.tokenrun_fence(token_group text, fence bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {quote}
BEGIN
    PERFORM FROM {schema}.tokens AS token
    WHERE token.token_group = $1 AND token.fence = $2 AND token.state = 'running'
    FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the fence % of group % is stale', $2, $1
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Another has the token, or nobody: end this job.';
    END IF;
END
{quote};

-- A waiter's heartbeat. $1: the group; $2: the session; $3: its document. The heartbeat need not survive
-- a crash of the server, so the commit waits for no disk. $4: the expiry; $5, $6: the server's start and
-- timeline. After the expiry, or on a server with another start or timeline, the heartbeat does not
-- count, because its sender may be dead. $7: the clock epoch, which is start and timeline. $8: the
-- channel that this session listens on.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, set_config('synchronous_commit', 'off', true) AS fleeting
    WHERE pg_postmaster_start_time() IS NOT DISTINCT FROM $5 AND pg_walfile_name('0/1') = $6
),
in_time AS MATERIALIZED (SELECT now FROM clock WHERE now <= $4),
forgotten AS (
    DELETE FROM waiters AS waiter USING in_time
    WHERE waiter.token_group = $1 AND waiter.session <> $2
        AND waiter.seen_at < now - interval '1 minute'
),
joined AS (
    INSERT INTO waiters (token_group, session, seen_at, clock_epoch, document)
    SELECT $1, $2, now, $7, $3::jsonb FROM in_time
    ON CONFLICT (token_group, session)
        DO UPDATE SET seen_at = excluded.seen_at, clock_epoch = excluded.clock_epoch
)
SELECT EXISTS (SELECT FROM pg_listening_channels() AS channel WHERE channel = $8) AS listening

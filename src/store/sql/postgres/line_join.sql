-- A sign of life need not survive a crash of the server: it waits for no disk. After $6, and in
-- another incarnation of the server than $7 and $8 tell, it is none: whose it is may be dead.
WITH clock AS MATERIALIZED ({clock}),
in_time AS MATERIALIZED (
    SELECT * FROM clock
    WHERE now <= $6 AND started IS NOT DISTINCT FROM $7 AND timeline = $8
),
fleeting AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS setting),
forgotten AS (
    DELETE FROM {schema}.waiters AS waiter USING in_time
    WHERE waiter.token_group = $1 AND waiter.session <> $2
        AND waiter.seen_at < now - interval '1 minute'
),
joined AS (
    INSERT INTO {schema}.waiters (token_group, session, client, failback, seen_at, domain)
    SELECT $1, $2, $3, $4, now, {domain} FROM in_time, fleeting
    ON CONFLICT (token_group, session)
        DO UPDATE SET seen_at = EXCLUDED.seen_at, domain = EXCLUDED.domain
)
SELECT
    now, timeline,
    EXISTS (SELECT FROM pg_listening_channels() AS channel WHERE channel = $5) AS listening
FROM clock

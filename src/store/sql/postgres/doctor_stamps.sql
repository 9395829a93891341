-- How far the newest stamp lies ahead of the clock that should have made it.
SELECT (extract(epoch FROM
    max(greatest(heartbeat_at, acquired_at, released_at, created_at)) - clock_timestamp()
) * 1000)::bigint AS ahead_ms
FROM {schema}.tokens

-- How far the newest stamp is ahead of the clock that should have made it.
SELECT (extract(epoch FROM
    max(stamped_at) - clock_timestamp()
) * 1000)::bigint AS ahead_ms
FROM tokens

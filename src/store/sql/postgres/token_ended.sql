-- As token_swapped.sql. $channel: on which those in line listen. Where there are none, nothing
-- is said.
SELECT
    now,
    CASE WHEN EXISTS (SELECT FROM {schema}.waiters WHERE token_group = $token_group)
        THEN pg_notify($channel, '')::text
    END AS told
FROM swapped

-- As token_swapped.sql, and rings for those in line, who listen on $channel. Where there are
-- none, nothing is said.
SELECT
    now,
    CASE WHEN EXISTS (SELECT FROM {schema}.waiters WHERE token_group = $token_group)
        THEN pg_notify($channel, '')::text
    END AS told
FROM swapped

-- As token_swapped.sql. $43: the channel on which those in line listen. Where there are none,
-- nothing is said.
SELECT
    now,
    CASE WHEN EXISTS (SELECT FROM {schema}.waiters WHERE token_group = $1)
        THEN pg_notify($43, '')::text
    END AS told
FROM swapped, clock

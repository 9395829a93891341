-- $43: the channel on which those in line listen. Where there are none, nothing is said.
SELECT
    now, now_domain, EXISTS (SELECT FROM swapped) AS done,
    found.version IS DISTINCT FROM $37 AS conflict,
    found.version IS NULL
        AND EXISTS (SELECT FROM {schema}.tokens WHERE token_group = $1) AS locked,
    (
        SELECT max(pg_notify($43, '')::text) FROM swapped
        WHERE EXISTS (SELECT FROM {schema}.waiters WHERE token_group = $1)
    ) AS told
FROM clock LEFT JOIN found ON true

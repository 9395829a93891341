-- As runs.sql, for the group $5. The order is by fence: fences rise, even over a failover to a server
-- with another clock.
SELECT token_group, fence, session, client, outcome, started_at, ended_at, document::text
FROM runs WHERE token_group = $5
    AND ($2 IS NULL OR client = $2) AND ($3 IS NULL OR outcome = $3)
    AND ($4 IS NULL OR started_at >= $4) AND pg_walfile_name('0/1') IS NOT NULL
ORDER BY fence DESC LIMIT $1

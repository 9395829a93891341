-- As runs.sql, for the group $6. The order is by fence: fences rise, even over a failover to a server with
-- another clock.
SELECT token_group, fence, session, client, outcome, started_at, ended_at, document
FROM tokenrun_runs WHERE token_group = $6
    AND ($2 IS NULL OR client = $2) AND ($3 IS NULL OR LOCATE(CONCAT(',', outcome, ','), $3) > 0)
    AND ($4 IS NULL OR started_at >= $4) AND ($5 IS NULL OR started_at < $5)
ORDER BY fence DESC LIMIT $1

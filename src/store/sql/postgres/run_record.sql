-- As run_end.sql, by itself.
WITH durable AS MATERIALIZED (SELECT {durable} AS setting),
clock AS MATERIALIZED ({clock})
UPDATE {schema}.runs
SET outcome = $4, exit_code = $5, signal = $6, ended_at = now
FROM durable, clock
WHERE token_group = $1 AND fence = $2 AND session = $3
    AND outcome IN ('running', 'unknown')

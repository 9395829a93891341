-- As run_end.sql, by itself.
WITH durable AS MATERIALIZED ({durable}),
clock AS MATERIALIZED ({clock})
UPDATE {schema}.runs
SET outcome = $3, exit_code = $4, signal = $5, ended_at = now
FROM durable, clock
WHERE token_group = $1 AND session = $2 AND outcome IN ('running', 'unknown')

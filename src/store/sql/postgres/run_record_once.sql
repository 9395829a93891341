-- As run_end_once.sql, by itself.
WITH durable AS MATERIALIZED (SELECT {durable} AS setting),
clock AS MATERIALIZED ({clock}),
ended AS (
    UPDATE {schema}.runs AS run
    SET outcome = $4, exit_code = $5, signal = $6, ended_at = now
    FROM durable, clock
    WHERE token_group = $1 AND fence = $2 AND session = $3
        AND outcome IN ('running', 'unknown')
    RETURNING run.token_group, run.once_key, run.ended_at, run.fence, run.session, run.client
)
INSERT INTO {schema}.once (token_group, once_key, done_at, fence, session, client)
SELECT * FROM ended WHERE once_key IS NOT NULL
ON CONFLICT DO NOTHING

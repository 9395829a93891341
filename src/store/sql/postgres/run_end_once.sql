-- As run_end.sql, of a run whose success makes its key done.
ended AS (
    UPDATE {schema}.runs AS run
    SET outcome = $40, exit_code = $41, signal = $42, ended_at = now
    FROM swapped, clock
    WHERE token_group = $1 AND fence = $38 AND session = $39
        AND outcome IN ('running', 'unknown')
    RETURNING run.token_group, run.once_key, run.ended_at, run.fence, run.session, run.client
),
marked AS (
    INSERT INTO {schema}.once (token_group, once_key, done_at, fence, session, client)
    SELECT * FROM ended WHERE once_key IS NOT NULL
    ON CONFLICT DO NOTHING
)

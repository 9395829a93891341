-- As run_end.sql, of a run whose success makes its key done.
ended AS (
    UPDATE {schema}.runs AS run
    SET outcome = $run_outcome, exit_code = $run_exit_code, signal = $run_signal, ended_at = now
    FROM swapped
    WHERE token_group = $token_group AND fence = $run_fence AND session = $run_session
        AND outcome IN ('running', 'unknown')
    RETURNING run.token_group, run.once_key, run.ended_at, run.fence, run.session, run.client
),
marked AS (
    INSERT INTO {schema}.once (token_group, once_key, done_at, fence, session, client)
    SELECT * FROM ended WHERE once_key IS NOT NULL
    ON CONFLICT DO NOTHING
)

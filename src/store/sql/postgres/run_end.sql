ended AS (
    UPDATE {schema}.runs
    SET outcome = $run_outcome, exit_code = $run_exit_code, signal = $run_signal, ended_at = now
    FROM swapped
    WHERE token_group = $token_group AND fence = $run_fence AND session = $run_session
        AND outcome IN ('running', 'unknown')
)

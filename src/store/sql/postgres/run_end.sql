-- The whole run: history may have lost what it had of it. A session closes its own once.
ended AS (
    INSERT INTO {schema}.runs AS run (
        token_group, fence, session, client, previous_client, host, pid, label,
        program, once_key, grant_kind, started_at, ended_at, outcome,
        exit_code, signal
    )
    SELECT
        $token_group, $run_fence, $run_session, $run_client, $run_previous_client, $run_host,
        $run_pid, $run_label, $run_program, $run_once_key, $run_grant_kind, $run_started_at,
        now, $run_outcome, $run_exit_code, $run_signal
    FROM swapped
    ON CONFLICT (token_group, fence) DO UPDATE
    SET ended_at = excluded.ended_at, outcome = excluded.outcome,
        exit_code = excluded.exit_code, signal = excluded.signal
    WHERE run.session = excluded.session AND run.outcome IN ('running', 'unknown')
    RETURNING run.token_group, run.once_key, run.ended_at, run.fence, run.session, run.client
)

begun AS (
    INSERT INTO {schema}.runs (
        token_group, fence, session, client, previous_client, host, pid, label,
        program, once_key, grant_kind, started_at, ended_at, outcome,
        exit_code, signal
    )
    SELECT
        $token_group, $run_fence, $run_session, $run_client, $run_previous_client, $run_host,
        $run_pid, $run_label, $run_program, $run_once_key, $run_grant_kind, now,
        $run_ended_at, $run_outcome, $run_exit_code, $run_signal
    FROM swapped
)

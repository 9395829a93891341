begun AS (
    INSERT INTO {schema}.runs (
        token_group, fence, session, client, previous_client, host, pid, label,
        program, once_key, grant_kind, started_at, ended_at, outcome,
        exit_code, signal
    )
    SELECT
        $1, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, now, $48, $49, $50, $51
    FROM swapped, clock
)

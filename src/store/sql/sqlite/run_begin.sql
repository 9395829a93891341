INSERT INTO runs (
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
)

SELECT
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
FROM {schema}.runs WHERE token_group = $2
ORDER BY started_at DESC, fence DESC LIMIT $1

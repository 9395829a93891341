SELECT
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
FROM {schema}.runs WHERE token_group = $2
-- Fences rise, whatever the clock of a server does that was failed over to.
ORDER BY fence DESC LIMIT $1

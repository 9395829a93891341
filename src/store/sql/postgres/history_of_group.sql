SELECT
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
FROM {schema}.runs WHERE token_group = $5
    AND ($2 IS NULL OR client = $2) AND ($3 IS NULL OR outcome = $3)
    AND ($4 IS NULL OR started_at >= $4) AND {primary}
-- Fences rise, whatever the clock of a server does that was failed over to.
ORDER BY fence DESC LIMIT $1

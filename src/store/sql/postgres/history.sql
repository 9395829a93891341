SELECT
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
FROM {schema}.runs
WHERE ($2 IS NULL OR client = $2) AND ($3 IS NULL OR outcome = $3)
    AND ($4 IS NULL OR started_at >= $4) AND {primary}
ORDER BY started_at DESC, fence DESC LIMIT $1

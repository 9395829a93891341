-- $34: the columns that the server's time goes into. $35, $36: after this time, or in
-- another domain, nothing happens any more. $37: the version that was read. A row that
-- another has locked is not waited for: it is not found.
clock AS MATERIALIZED (
    SELECT now, now_domain, now > $35 OR now_domain <> $36 AS expired, ({durable}) AS durable
    FROM ({clock}) AS server
),
found AS MATERIALIZED (
    SELECT version FROM {schema}.tokens WHERE token_group = $1
    {lock} SKIP LOCKED
),
swapped AS (
    UPDATE {schema}.tokens AS token SET
        state = $2, client_bound = $3, expected_client = $4, session = $5,
        fence = $6, host = $7, pid = $8, label = $9,
        heartbeat_at = CASE WHEN 'heartbeat_at' = ANY ($34) THEN now ELSE $10 END,
        acquired_at = CASE WHEN 'acquired_at' = ANY ($34) THEN now ELSE $11 END,
        released_at = CASE WHEN 'released_at' = ANY ($34) THEN now ELSE $12 END,
        created_at = CASE WHEN 'created_at' = ANY ($34) THEN now ELSE $13 END,
        domain = CASE WHEN 'domain' = ANY ($34) THEN now_domain ELSE $14 END,
        granted_domain = $15, takeover_after_ms = $16, keep_ms = $17,
        head_start_ms = $18, not_before_ms = $19, lock_file = $20,
        paused_by = $21, paused_reason = $22, paused_until = $23,
        handoff_to = $24, handoff_at = $25, revoke_requested = $26,
        last_outcome = $27, runs = $28, failures = $29, takeovers = $30,
        losses = $31, version = $32, session_version = $33
    FROM clock, found
    WHERE token.token_group = $1 AND found.version = $37 AND NOT clock.expired
    RETURNING 1
)

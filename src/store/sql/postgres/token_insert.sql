-- $34 to $36 stand for what token_update.sql says. Two that insert at once: the second
-- waits for the first one's commit, and then does nothing.
clock AS MATERIALIZED ({clock}),
durable AS MATERIALIZED ({durable}),
expired AS MATERIALIZED (
    SELECT now > $35 OR now_domain <> $36 AS yes FROM clock
),
swapped AS (
    INSERT INTO {schema}.tokens (
        token_group, state, client_bound, expected_client, session, fence,
        host, pid, label, heartbeat_at, acquired_at, released_at, created_at,
        domain, granted_domain, takeover_after_ms, keep_ms, head_start_ms,
        not_before_ms, lock_file, paused_by, paused_reason, paused_until,
        handoff_to, handoff_at, revoke_requested, last_outcome, runs, failures,
        takeovers, losses, version, session_version
    )
    SELECT
        $1, $2, $3, $4, $5, $6, $7, $8, $9,
        CASE WHEN 'heartbeat_at' = ANY ($34) THEN now ELSE $10 END,
        CASE WHEN 'acquired_at' = ANY ($34) THEN now ELSE $11 END,
        CASE WHEN 'released_at' = ANY ($34) THEN now ELSE $12 END,
        CASE WHEN 'created_at' = ANY ($34) THEN now ELSE $13 END,
        CASE WHEN 'domain' = ANY ($34) THEN now_domain ELSE $14 END,
        $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28,
        $29, $30, $31, $32, $33
    FROM clock, durable, expired
    WHERE NOT expired.yes
    ON CONFLICT DO NOTHING
    RETURNING 1
)

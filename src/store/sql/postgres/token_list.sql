WITH clock AS MATERIALIZED ({clock})
SELECT
    now, started, timeline,
    (SELECT value FROM {schema}.meta WHERE name = 'oldest_reader'),
    token.token_group, state, client_bound, expected_client, session, fence,
    host, pid, label, heartbeat_at, acquired_at, released_at, created_at,
    domain, granted_domain, takeover_after_ms, keep_ms, head_start_ms,
    not_before_ms, lock_file, paused_by, paused_reason, paused_until,
    handoff_to, handoff_at, revoke_requested, last_outcome, runs, failures,
    takeovers, losses, succeeded, signalled, timed_out, not_started, vanished, forced,
    version, session_version, handoff_failback
FROM clock
LEFT JOIN {schema}.tokens AS token ON true
ORDER BY token.token_group

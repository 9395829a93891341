SELECT
    token_group, state, client_bound, expected_client, session, fence,
    host, pid, label, heartbeat_at, heartbeat_tick, acquired_at,
    acquired_tick, released_at, released_tick, created_at, created_tick,
    domain, granted_domain, takeover_after_ms, keep_ms, head_start_ms,
    not_before_ms, lock_file, paused_by, paused_reason, paused_until,
    handoff_to, handoff_at, revoke_requested, last_outcome, runs, failures,
    takeovers, losses, succeeded, signalled, timed_out, not_started, vanished,
    forced, version, session_version, handoff_failback
FROM tokens ORDER BY token_group

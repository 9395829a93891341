SELECT
    now, now_domain,
    (SELECT value FROM {schema}.meta WHERE name = 'oldest_reader'),
    token.token_group, state, client_bound, expected_client, session, fence,
    host, pid, label, heartbeat_at, acquired_at, released_at, created_at,
    domain, granted_domain, takeover_after_ms, keep_ms, head_start_ms,
    not_before_ms, lock_file, paused_by, paused_reason, paused_until,
    handoff_to, handoff_at, revoke_requested, last_outcome, runs, failures,
    takeovers, losses, coalesce(succeeded, 0) AS succeeded,
    coalesce(signalled, 0) AS signalled, coalesce(timed_out, 0) AS timed_out,
    coalesce(not_started, 0) AS not_started, coalesce(vanished, 0) AS vanished,
    coalesce(forced, 0) AS forced, version, session_version,
    waiter_session, waiter_place, waiter_client, waiter_failback, waiter_seen_at,
    waiter_domain
FROM ({clock}) AS clock
LEFT JOIN {schema}.tokens AS token ON token.token_group = $1
LEFT JOIN {schema}.outcomes AS outcome ON outcome.token_group = $1
-- A row for each who waits; one where nobody does.
LEFT JOIN (
    SELECT
        session AS waiter_session, place AS waiter_place, client AS waiter_client,
        failback AS waiter_failback, seen_at AS waiter_seen_at, domain AS waiter_domain
    FROM {schema}.waiters WHERE token_group = $1
) AS waiter ON true
ORDER BY waiter_place

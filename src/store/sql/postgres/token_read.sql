-- A row for each who waits; one where nobody does. In no order.
SELECT
    now, started, timeline,
    (SELECT value FROM {schema}.meta WHERE name = 'oldest_reader'),
    token.token_group, state, client_bound, expected_client, token.session, fence,
    host, pid, label, heartbeat_at, acquired_at, released_at, created_at,
    token.domain, granted_domain, takeover_after_ms, keep_ms, head_start_ms,
    not_before_ms, lock_file, paused_by, paused_reason, paused_until,
    handoff_to, handoff_at, revoke_requested, last_outcome, runs, failures,
    takeovers, losses, coalesce(succeeded, 0) AS succeeded,
    coalesce(signalled, 0) AS signalled, coalesce(timed_out, 0) AS timed_out,
    coalesce(not_started, 0) AS not_started, coalesce(vanished, 0) AS vanished,
    coalesce(forced, 0) AS forced, version, session_version,
    waiter.session AS waiter_session, place AS waiter_place, client AS waiter_client,
    failback AS waiter_failback, seen_at AS waiter_seen_at, waiter.domain AS waiter_domain
FROM ({clock}) AS clock
LEFT JOIN {schema}.tokens AS token ON token.token_group = $1
LEFT JOIN {schema}.outcomes AS outcome ON outcome.token_group = $1
LEFT JOIN {schema}.waiters AS waiter ON waiter.token_group = $1

-- A row for each who waits; one where nobody does. In no order.
SELECT
    {now} AS now, {started} AS started, {timeline} AS timeline,
    (SELECT value FROM {schema}.meta WHERE name = 'oldest_reader'),
    token.token_group, state, client_bound, expected_client, token.session, fence,
    host, pid, label, heartbeat_at, acquired_at, released_at, created_at,
    token.domain, granted_domain, takeover_after_ms, keep_ms, head_start_ms,
    not_before_ms, lock_file, paused_by, paused_reason, paused_until,
    handoff_to, handoff_at, revoke_requested, last_outcome, runs, failures,
    takeovers, losses, succeeded, signalled, timed_out, not_started, vanished, forced,
    version, session_version, handoff_failback,
    waiter.session AS waiter_session, place AS waiter_place, client AS waiter_client,
    failback AS waiter_failback, seen_at AS waiter_seen_at, waiter.domain AS waiter_domain
FROM {found}
LEFT JOIN {schema}.waiters AS waiter ON waiter.token_group = $1
{where}

-- The version was compared in the same transaction.
UPDATE tokens SET
    state = ?2, client_bound = ?3, expected_client = ?4, session = ?5,
    fence = ?6, host = ?7, pid = ?8, label = ?9, heartbeat_at = ?10,
    heartbeat_tick = ?11, acquired_at = ?12, acquired_tick = ?13,
    released_at = ?14, released_tick = ?15, created_at = ?16,
    created_tick = ?17, domain = ?18, granted_domain = ?19,
    takeover_after_ms = ?20, keep_ms = ?21, head_start_ms = ?22,
    not_before_ms = ?23, lock_file = ?24, paused_by = ?25,
    paused_reason = ?26, paused_until = ?27, handoff_to = ?28,
    handoff_at = ?29, revoke_requested = ?30, last_outcome = ?31,
    runs = ?32, failures = ?33, takeovers = ?34, losses = ?35,
    succeeded = ?36, signalled = ?37, timed_out = ?38, not_started = ?39,
    vanished = ?40, forced = ?41, version = ?42, session_version = ?43,
    handoff_failback = ?44
WHERE token_group = ?1

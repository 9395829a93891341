SELECT token_group, place, session, client, failback, seen_at, seen_tick, domain
FROM waiters WHERE token_group = ?1 ORDER BY place

SELECT token_group, place, session, client, failback, seen_at, seen_tick, domain
FROM waiters ORDER BY token_group, place

SELECT token_group, place, session, seen_at, seen_tick, domain, document
FROM waiters ORDER BY token_group, place

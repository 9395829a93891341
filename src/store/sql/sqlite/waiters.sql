SELECT token_group, place, session, seen_at, seen_tick, clock_epoch, document
FROM waiters ORDER BY token_group, place

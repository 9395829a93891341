SELECT token_group, position, session, seen_at, seen_tick, clock_epoch, document
FROM waiters ORDER BY token_group, position

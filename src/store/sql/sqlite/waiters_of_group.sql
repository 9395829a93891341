SELECT token_group, position, session, seen_at, seen_tick, clock_epoch, document
FROM waiters WHERE token_group = ?1 ORDER BY position

SELECT token_group, position, session, seen_at, clock_epoch, document
FROM tokenrun_waiters ORDER BY token_group, position

SELECT token_group, position, session, seen_at, clock_epoch, document::text
FROM waiters ORDER BY token_group, position

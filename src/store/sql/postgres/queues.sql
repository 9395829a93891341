SELECT token_group, place, session, seen_at, clock_epoch, document::text
FROM waiters ORDER BY token_group, place

SELECT token_group, place, session, seen_at, domain, document::text
FROM waiters ORDER BY token_group, place

SELECT token_group, session, place, client, failback, seen_at, domain
FROM {schema}.waiters ORDER BY token_group, place

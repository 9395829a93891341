INSERT INTO waiters (token_group, place, session, client, failback, seen_at, seen_tick, domain)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

INSERT INTO waiters (token_group, position, session, seen_at, seen_tick, clock_epoch, document)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

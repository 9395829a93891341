INSERT INTO once (token_group, once_key, done_at, fence, session, client)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING

INSERT INTO done_keys (token_group, once_key, done_at, fence, document)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING

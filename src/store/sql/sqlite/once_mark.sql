INSERT INTO once (token_group, once_key, done_at, fence, session, client)
SELECT token_group, once_key, ?4, fence, session, client FROM runs
WHERE token_group = ?1 AND fence = ?2 AND session = ?3 AND once_key IS NOT NULL
ON CONFLICT DO NOTHING

SELECT token_group, once_key, done_at, fence, document
FROM done_keys WHERE token_group = ?1 AND once_key = ?2

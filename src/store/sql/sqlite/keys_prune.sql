DELETE FROM done_keys WHERE token_group = ?1 AND once_key IN (
    SELECT once_key FROM done_keys
    WHERE token_group = ?1 AND done_at < ?2 AND fence <= ?3 LIMIT ?4
)

DELETE FROM done_keys WHERE token_group = ?1 AND once_key = ?2

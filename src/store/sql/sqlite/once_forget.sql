DELETE FROM once WHERE token_group = ?1 AND once_key = ?2

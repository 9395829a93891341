DELETE FROM outputs WHERE token_group = ?1 AND written_at < ?2 AND fence <= ?3

DELETE FROM refusals WHERE token_group = ?1 AND last_at < ?2 AND fence <= ?3

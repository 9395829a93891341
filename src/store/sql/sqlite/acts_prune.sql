DELETE FROM acts WHERE token_group = ?1 AND at < ?2 AND fence <= ?3

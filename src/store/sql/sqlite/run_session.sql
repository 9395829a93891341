SELECT session FROM runs WHERE token_group = ?1 AND fence = ?2

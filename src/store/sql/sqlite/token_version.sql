SELECT version FROM tokens WHERE token_group = ?1

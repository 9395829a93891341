SELECT fence, started_at FROM runs WHERE token_group = ?1 ORDER BY fence DESC LIMIT ?2

SELECT fence, started_at, outcome <> 'running'
FROM runs WHERE token_group = ?1 ORDER BY fence DESC LIMIT ?2

SELECT token_group, fence, session, written_at, document
FROM outputs
WHERE token_group = ?1 AND (?2 IS NULL OR fence = ?2)
ORDER BY fence DESC, written_at DESC LIMIT 1
